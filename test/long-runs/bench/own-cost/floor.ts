import type { FloorEnv } from "../floor/allocator.ts";
import floor from "../floor.ts";
import { driverOf } from "./driver.ts";

export { Allocator } from "../floor.ts";

export default driverOf<FloorEnv>(floor.fetch);
