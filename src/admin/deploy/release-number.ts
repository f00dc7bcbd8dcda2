import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { PROJECT } from "../platform/paths.ts";

const versioned = z.object({ version: z.string().regex(/^\d+\.\d+\.\d+$/) });

/** The release of this checkout. Only package.json has it. */
export const RELEASE_NUMBER = versioned.parse(JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8"))).version;
