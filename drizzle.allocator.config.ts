import { defineConfig } from "drizzle-kit";

/** The tables of the allocator's object; D1's are in drizzle.config.ts. */
export default defineConfig({
  dialect: "sqlite",
  driver: "durable-sqlite",
  schema: "./src/worker/allocator/tables/schema.ts",
  out: "./src/worker/allocator/tables/migrations",
});
