import worker from "../../../src/worker.ts";
import { driverOf } from "./driver.ts";

export { Allocator, WebhookSender } from "../../../src/worker.ts";

export default driverOf<Env>(worker.fetch);
