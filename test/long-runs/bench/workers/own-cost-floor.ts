import floor from "./floor.ts";
import type { FloorEnv } from "./floor-allocator.ts";
import { driverOf } from "./own-cost-driver.ts";

export { Allocator } from "./floor-allocator.ts";

export default driverOf<FloorEnv>(floor.fetch);
