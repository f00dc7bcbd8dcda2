import { enableCompileCache, registerHooks } from "node:module";
import { join } from "node:path";
import { PROJECT } from "./paths.ts";

/**
 * Makes everything that is imported after it load faster: a command takes half the time.
 *
 * Drizzle is over a hundred small files. For each import between them Node reads Drizzle's package.json again, all 180
 * KB of it, to learn whether the file is a module. They all are, so the hook says so. Compiled code is kept in a cache.
 */
enableCompileCache(join(PROJECT, "node_modules/.cache/badge-admin"));
registerHooks({
  resolve(specifier, context, nextResolve) {
    const { parentURL } = context;
    const isWithinDrizzle = parentURL?.includes("/node_modules/drizzle-orm/") && /^\.{1,2}\/.*\.js$/.test(specifier);
    if (!isWithinDrizzle) return nextResolve(specifier, context);
    return { url: new URL(specifier, parentURL).href, format: "module", shortCircuit: true };
  },
});
