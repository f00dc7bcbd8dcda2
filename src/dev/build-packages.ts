import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod";

/**
 * `npm run build:packages` writes the packages that other programs install, into dist/packages or the folder given as an
 * argument. `npm pack` and `npm publish` work in each folder.
 */

interface Package {
  /** Folder of `src`, and of the output. */
  folder: string;
  description: string;
  /** The folder's module that programs import. */
  entry: string;
  /** Files beside the code that programs can import. */
  data: readonly string[];
}

const PACKAGES: readonly Package[] = [
  {
    folder: "client",
    description: "Typed client of the badge distribution service, for apps on devices and for application servers.",
    entry: "index",
    data: [],
  },
  {
    folder: "verify",
    description: "Verifies badge signatures offline, at a door or on a server.",
    entry: "index",
    data: ["vectors.json", "vectors-possession.json"],
  },
];

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
const TSC = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");
/** Besides the code, in every package. */
const DOCUMENTS = ["LICENSE", "CHANGELOG.md"];
/** On GitHub. npm accepts provenance only from the repository that the package names. */
const REPOSITORY = process.env.GITHUB_REPOSITORY || "badge-distribution/badge-distribution-service";

/** The emitted code. It has the layout of `src`, so that imports from `src/shared` work. */
const CODE = "lib";

const project = z
  .object({ version: z.string(), license: z.string().default("MIT"), engines: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")));

function manifest({ folder, description, entry, data }: Package): object {
  const module = `./${CODE}/${folder}/${entry}`;
  return {
    name: `@badge-distribution/${folder}`,
    version: project.version,
    description,
    license: project.license,
    repository: { type: "git", url: `git+https://github.com/${REPOSITORY}.git`, directory: `src/${folder}` },
    // The release workflow asks for provenance, because npm can state it only there.
    publishConfig: { access: "public" },
    type: "module",
    sideEffects: false,
    engines: project.engines,
    types: `${module}.d.ts`,
    exports: {
      ".": { types: `${module}.d.ts`, default: `${module}.js` },
      ...Object.fromEntries(data.map((name) => [`./${name}`, `./${name}`])),
      "./package.json": "./package.json",
    },
    files: [CODE, ...data, "CHANGELOG.md"],
  };
}

function compile(folder: string, output: string): void {
  const emit = ["--noEmit", "false", "--declaration", "--rewriteRelativeImportExtensions"];
  const places = ["--rootDir", join(PROJECT, "src"), "--outDir", join(output, CODE)];
  const program = join(PROJECT, "src", folder);
  const { status } = spawnSync(process.execPath, [TSC, "-p", program, ...emit, ...places], { stdio: "inherit" });
  if (status !== 0) throw new Error(`src/${folder} does not compile`);
  for (const name of readdirSync(join(output, CODE), { recursive: true, encoding: "utf8" })) {
    if (name.endsWith(".d.ts")) rewriteImports(join(output, CODE, name));
  }
}

/** The compiler rewrites `.ts` only in JavaScript, but Deno looks for exactly the file that a declaration imports. */
function rewriteImports(declaration: string): void {
  const text = readFileSync(declaration, "utf8");
  writeFileSync(declaration, text.replaceAll(/(from "\.[^"]*)\.ts"/g, '$1.js"'));
}

function build(each: Package, output: string): void {
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  compile(each.folder, output);
  writeFileSync(join(output, "package.json"), `${JSON.stringify(manifest(each), null, 2)}\n`);
  for (const name of ["README.md", ...each.data]) cpSync(join(PROJECT, "src", each.folder, name), join(output, name));
  for (const name of DOCUMENTS) cpSync(join(PROJECT, name), join(output, name));
}

const packages = resolve(process.argv[2] ?? join(PROJECT, "dist/packages"));
for (const each of PACKAGES) {
  build(each, join(packages, each.folder));
  console.log(join(packages, each.folder));
}
