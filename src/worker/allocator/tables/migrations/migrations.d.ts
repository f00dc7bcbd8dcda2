/** Made by drizzle-kit. */
declare const migrations: Parameters<typeof import("drizzle-orm/durable-sqlite/migrator").migrate>[1];
export default migrations;
