import { applyD1Migrations, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, vi } from "vitest";
import { homesOf } from "../../src/worker/homes.ts";
import { forgetLines, keepLog } from "./log.ts";

// Before each file: the files share a runtime, but each begins at the real time, with storage in which nothing is.
vi.useRealTimers();
vi.restoreAllMocks();
await reset();
await Promise.all(homesOf(env).map(({ d1 }) => applyD1Migrations(d1, env.TEST_MIGRATIONS)));

keepLog();
beforeEach(forgetLines);
