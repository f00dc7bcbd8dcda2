import floor from "./floor.ts";
import { driverOf } from "./own-cost-driver.ts";

export { Allocator } from "./floor.ts";

export default driverOf(floor.fetch);
