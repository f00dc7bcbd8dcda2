import fc from "fast-check";
import { byEffort } from "./effort.ts";

/**
 * Where random tests begin. Every short run tries the same, so that none fails by chance; each `npm run test:full` tries
 * others. A failure names its seed.
 */
export const SEED = byEffort(4, Math.floor(Math.random() * 2 ** 31));

fc.configureGlobal({ seed: SEED });

/** fast-check, from that seed. */
export { fc };
