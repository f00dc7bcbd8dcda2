import { applyD1Migrations, reset } from "cloudflare:test";
import { env } from "cloudflare:workers";

// Before each file: the files share a runtime, but each begins with storage in which nothing is.
await reset();
await applyD1Migrations(env.DB, env.TEST_MIGRATIONS);
