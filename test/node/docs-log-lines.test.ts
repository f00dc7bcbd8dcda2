import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import * as z from "zod";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/** `event` is one name, or one of two. */
const LOGGED =
  /\blog(?:Line)?\(\s*"(?<level>info|warn|error)",\s*\{\s*event: (?:\w+ \? )?(?<events>"[\w-]+"(?: : "[\w-]+")?)/g;

/** A row of the table: event and level. */
const LISTED = /^\| `([\w-]+)` \| (info|warn|error) \|/gm;

const namesIn = (text: string): string[] => text.match(/[\w-]+/g) ?? [];

const loggedIn = (text: string): string[][] =>
  [...text.matchAll(LOGGED)].map(({ groups }) =>
    namesIn(groups?.events ?? "").map((name) => `${groups?.level} ${name}`),
  );

const WORKER = join(PROJECT, "src/worker");

const texts = readdirSync(WORKER, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => readFileSync(join(WORKER, path), "utf8"));

const logged = new Set(texts.flatMap((text) => loggedIn(text).flat()));

describe("docs/operations.md", () => {
  it("docs/operations.md lists every line that the Worker logs, with its level, and no other", () => {
    // Every call of `log`, also under its other name, is found by the pattern: none is left for a reader of the document to miss.
    const calls = texts.flatMap((text) => text.match(/(?<!function |\.)\blog(?:Line)?\(/g) ?? []).length;
    expect(texts.flatMap(loggedIn)).toHaveLength(calls);
    const operations = readFileSync(join(PROJECT, "docs/operations.md"), "utf8");
    const listed = [...operations.matchAll(LISTED)].map(([, event, level]) => `${level} ${event}`);
    expect(listed.toSorted()).toEqual([...logged].toSorted());
  });
});

/** Fields that a query filters by, sums by or unwraps. */
const FIELD = /\| (\w+) ?[!=<>]=?~?|\bunwrap (\w+)|\bby \((\w+)\)/g;

/** The words of the calls that log an event, its fields among them. */
const wordsLoggedWith = (event: string): string[] =>
  texts.flatMap((text) => {
    const start = text.indexOf(`event: "${event}"`);
    return start === -1 ? [] : namesIn(text.slice(start, text.indexOf("})", start)));
  });

describe("docs/monitoring", () => {
  const events = new Set([...logged].map((line) => line.split(" ")[1]));

  it.each(["alarms.yaml", "dashboard.json"])(
    "%s asks only for lines that the Worker logs, and for their fields",
    (file) => {
      const text = readFileSync(join(PROJECT, "docs/monitoring", file), "utf8").replaceAll('\\"', '"');
      const asked = [...text.matchAll(/\bevent!?="([\w-]+)"/g)].map(([, event]) => event);
      expect(asked).toEqual(expect.arrayContaining(["request", "delivery", "sweep", "range-fills-up"]));
      expect(asked.filter((event) => !events.has(event))).toEqual([]);
      for (const level of ["error", "warn"]) expect(text).toContain(`level="${level}"`);
      for (const query of text.match(/^.*\{service_name=.*$/gm) ?? []) {
        const words = [...query.matchAll(/\bevent="([\w-]+)"/g)].flatMap(([, event = ""]) => wordsLoggedWith(event));
        const fields = [...query.matchAll(FIELD)].map(([, ...names]) => names.find((name) => name !== undefined));
        expect(["level", "event", ...words], query).toEqual(expect.arrayContaining(fields));
      }
    },
  );

  it("the alarm rules of docs/monitoring are YAML: a text with a colon is quoted", () => {
    const rules = readFileSync(join(PROJECT, "docs/monitoring/alarms.yaml"), "utf8");
    expect(rules.match(/^ +[\w-]+: [^'"#\n]*: .*$/gm)).toBeNull();
  });

  it("docs/monitoring has a dashboard of panels with a query each", () => {
    const panel = z.object({ title: z.string(), targets: z.tuple([z.object({ expr: z.string().min(1) })]) });
    const dashboard: unknown = JSON.parse(readFileSync(join(PROJECT, "docs/monitoring/dashboard.json"), "utf8"));
    const { panels } = z.object({ panels: z.array(panel) }).parse(dashboard);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  });
});
