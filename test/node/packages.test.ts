import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import {
  EXAMPLE_BADGE,
  EXAMPLE_SECRET,
  EXAMPLE_WEBHOOK_BODY,
  EXAMPLE_WEBHOOK_HEADERS,
} from "../../src/shared/openapi-examples.ts";
import { POSSESSION_CASES } from "../verify/possession-vectors.ts";
import { CASES } from "../verify/vectors.ts";

const PROJECT = new URL("../../", import.meta.url).pathname;
const TSC = join(PROJECT, "node_modules/typescript/bin/tsc");

/** Somebody else's project: it has the two packages from their tarballs, and nothing else. */
const consumer = mkdtempSync(join(tmpdir(), "badge-packages-"));

beforeAll(() => {
  const packages = join(consumer, "packages");
  execFileSync(process.execPath, [join(PROJECT, "src/dev/build-packages.ts"), packages]);
  writeFileSync(join(consumer, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  const npm = (...words: string[]) => execFileSync("npm", ["--silent", ...words], { cwd: consumer, encoding: "utf8" });
  const tarballs = npm("pack", "./packages/client", "./packages/verify").trim().split("\n");
  npm("install", "--offline", "--no-audit", "--no-fund", ...tarballs.map((name) => `./${name}`));
});

afterAll(() => rmSync(consumer, { recursive: true, force: true }));

const read = (...path: string[]): string => readFileSync(join(...path), "utf8");

/** Finds the machine's own Node before the project's, which npm puts first. */
const PATH = [
  ...(process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules")),
  dirname(process.execPath),
].join(delimiter);

/** Runs a module of the consumer. @returns what it printed, parsed */
function run(source: string): unknown {
  writeFileSync(join(consumer, "program.js"), source);
  return JSON.parse(execFileSync("node", ["program.js"], { cwd: consumer, env: { PATH }, encoding: "utf8" }));
}

describe("the packed packages are ready to publish (contract section 25)", () => {
  it.each(["client", "verify"])("%s has its licence, changes, repository and a version", (name) => {
    const folder = join(consumer, "node_modules/@badge-distribution", name);
    for (const file of ["LICENSE", "CHANGELOG.md", "README.md"]) expect(read(folder, file)).not.toBe("");
    const manifest: unknown = JSON.parse(read(folder, "package.json"));
    const { version } = z.object({ version: z.string() }).parse(JSON.parse(read(PROJECT, "package.json")));
    const repository = { type: "git", directory: `src/${name}`, url: expect.stringMatching(/^git\+https:/) };
    const published = { license: "MIT", type: "module", publishConfig: { access: "public" } };
    expect(manifest).toMatchObject({ version, repository, ...published });
    expect(read(PROJECT, "src/verify/python/pyproject.toml")).toContain(`\nversion = "${version}"\n`);
  });
});

describe("the packed packages run in plain Node", () => {
  it("the verifier passes every published vector, which the package includes", () => {
    const outcomes = run(`
      import { readFileSync } from "node:fs";
      import { verifyBadgeSignature, verifyPossession } from "@badge-distribution/verify";
      const vectors = (name) => JSON.parse(readFileSync(new URL(import.meta.resolve("@badge-distribution/verify/" + name)))).cases;
      const outcome = (result) => (result.ok ? "ok" : result.reason);
      const expectations = ({ publicKeys, publicKey, nowSeconds, ...rest }) =>
        ({ keys: publicKeys ?? { publicKey }, now: nowSeconds * 1000, ...rest });
      const signatures = vectors("vectors.json").map(async (vector) =>
        outcome(await verifyBadgeSignature(vector.jwt, expectations(vector))));
      const phones = vectors("vectors-possession.json").map(async (vector) =>
        outcome(await verifyPossession(vector, expectations(vector))));
      console.log(JSON.stringify([await Promise.all(signatures), await Promise.all(phones)]));
    `);
    expect(outcomes).toEqual([CASES, POSSESSION_CASES].map((cases) => cases.map(({ expected }) => expected)));
  });

  it("the client verifies a webhook, and names the service's error", () => {
    const webhook = { headers: EXAMPLE_WEBHOOK_HEADERS, body: EXAMPLE_WEBHOOK_BODY, secrets: EXAMPLE_SECRET };
    const result = run(`
      import { createServer } from "node:http";
      import { BadgeServiceError, DeviceClient, verifyWebhook } from "@badge-distribution/client";
      const server = createServer((_, response) => response.writeHead(404).end('{"error":"UNKNOWN_BADGE"}')).listen(0);
      const baseUrl = "http://localhost:" + server.address().port;
      const phone = new DeviceClient({ baseUrl, applicationId: "app", udid: "phone" });
      const error = await phone.sign("aGVsbG8=").catch((error) => error);
      server.closeAllConnections();
      server.close();
      const webhook = await verifyWebhook({ ...${JSON.stringify(webhook)}, now: 1_800_000_001_000 });
      console.log(JSON.stringify({ refused: error instanceof BadgeServiceError && error.code, webhook }));
    `);
    expect(result).toMatchObject({
      refused: "UNKNOWN_BADGE",
      webhook: { ok: true, event: { data: { id: EXAMPLE_BADGE } } },
    });
  });
});

/** What the examples of both README files leave to the reader, as globals. */
const READERS_PART = `
  declare const applicationId: string, applicationSecret: string, udid: string, signature: string, clientSignature: string, challenge: string;
  declare const badgeId: string, visit: { id: string; day: Date; end: Date };
  declare function store(badges: readonly import("@badge-distribution/client").ListedBadge[]): Promise<void>;
  declare function giveAccess(badgeNumber: string, userId: string, times?: { startsAt?: string | undefined; expiresAt?: string | undefined }): Promise<void>;
  declare function removeAccess(badgeNumber: string): Promise<void>;
  declare function openDoor(badgeNumber: string): void;
  declare const keys: import("@badge-distribution/verify").JwkSet;
  interface Login { idToken: string; claims: { sub: string } }
  declare const appAuth: { authorize(options: { issuer: string; clientId: string; scopes: string[] }): Promise<Login>; refresh(login: Login): Promise<Login> };
  declare function letUserChoose(badges: readonly import("@badge-distribution/client").Badge[]): Promise<import("@badge-distribution/client").Badge>;
  declare function askPhone(challenge: string): Promise<import("@badge-distribution/verify").PresentedBadge>;
`;

function typeErrors(files: Record<string, string>, options: object): string {
  const folder = join(consumer, "typed");
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const compilerOptions = { strict: true, noEmit: true, skipLibCheck: false, target: "es2022", ...options };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: Object.keys(files) }));
  const { stdout } = spawnSync(process.execPath, [TSC, "-p", folder], { encoding: "utf8" });
  return stdout;
}

/** The TypeScript examples of a package's README, each as a module. */
function examplesOf(name: string): Record<string, string> {
  const readme = read(consumer, `node_modules/@badge-distribution/${name}/README.md`);
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```/gms)];
  return Object.fromEntries(blocks.map(([, code = ""], index) => [`${name}-${index}.ts`, code]));
}

describe("the packed packages are typed", () => {
  const node = { typeRoots: [join(PROJECT, "node_modules/@types")], types: ["node"] };

  const bundler = { module: "esnext", moduleResolution: "bundler", lib: ["es2022", "dom"], ...node };
  it.each([
    ["Node's types and its resolution", { module: "nodenext", lib: ["es2022"], ...node }],
    ["a browser's types and a bundler's resolution", bundler],
  ])("the packages and the examples of both README files compile, with %s", (_name, options) => {
    const examples = { ...examplesOf("client"), ...examplesOf("verify") };
    expect(Object.keys(examples).length).toBeGreaterThan(5);
    const checks = { ...options, noUncheckedIndexedAccess: true };
    expect(typeErrors({ ...examples, "reader.d.ts": READERS_PART }, checks)).toBe("");
  });

  it("the packages compile without any other types, and their own say something", () => {
    const mistakes = `
      import { DeviceClient, ERROR_CODES, type ErrorCode } from "@badge-distribution/client";
      import { verifyBadgeSignature } from "@badge-distribution/verify";
      // @ts-expect-error A device client needs a udid.
      new DeviceClient({ baseUrl: "", applicationId: "" });
      // @ts-expect-error The time is required.
      verifyBadgeSignature("", { keys: { keys: [] }, applicationId: "" });
      export const codes: readonly ErrorCode[] = ERROR_CODES;
    `;
    expect(typeErrors({ "mistakes.ts": mistakes }, { module: "nodenext", lib: ["es2022"], types: [] })).toBe("");
  });
});
