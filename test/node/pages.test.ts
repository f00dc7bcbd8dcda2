import { beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness } from "./support/harness.ts";

let service: Harness;

beforeAll(async () => {
  service = await startHarness();
}, 120_000);

const get = (path: string, init: RequestInit = {}) =>
  fetch(`${service.origin}${path}`, { redirect: "manual", ...init });

describe.each([
  { page: "/docs", file: "docs/scalar.js", unknown: ["/docs/nothing", "/docs/docs.html", "/docs.html"] },
  {
    page: "/console",
    file: "console/console.js",
    unknown: ["/console/nothing", "/console.html", "/console/console.html"],
  },
])("$page over HTTP (contract sections 6, 11 and 19)", ({ page, file, unknown }) => {
  it("GET and HEAD return the page, which refers to no file of another host", async () => {
    const [{ status, headers }, response] = [await get(page, { method: "HEAD" }), await get(page)];
    for (const each of [headers, response.headers]) {
      expect(each.get("content-type")).toMatch(/^text\/html/);
      expect(each.get("x-request-id")).toMatch(/^[\w-]{36}$/);
      expect(each.get("content-security-policy")).toContain("default-src 'none'; script-src 'self'");
    }
    expect([status, response.status]).toEqual([200, 200]);
    const assets = assetsOf(await response.text());
    expect(assets).toEqual(expect.arrayContaining([`/${file}`, "/docs/product.css"]));
    for (const path of assets) {
      expect(path).toMatch(/^\/[^/]/);
      expect((await get(path)).status, path).toBe(200);
    }
  });

  it("the page's route responds with 404 to unknown paths and 405 to other methods", async () => {
    expect((await get(`${page}/`)).headers.get("location")).toBe(page);
    for (const path of [...unknown, `/${file}/`]) {
      const response = await get(path);
      expect([response.status, await response.json()], path).toEqual([404, { error: "NOT_FOUND" }]);
    }
    for (const path of [page, `/${file}`]) {
      const posted = await get(path, { method: "POST" });
      expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    }
  });
});

/** Files that a page loads, without the pages that it links to. */
const assetsOf = (html: string): string[] => [
  ...new Set([...html.matchAll(/(?:src|href)="([^"#]*\.\w+)"/g)].map(([, path = ""]) => path)),
];
