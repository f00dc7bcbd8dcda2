import worker from "../../../../src/worker/index.ts";
import { driverOf } from "./own-cost-driver.ts";

export { Allocator, WebhookSender } from "../../../../src/worker/index.ts";

export default driverOf(worker.fetch);
