import { describe, expect, it } from "vitest";
import { LruCache } from "../src/worker/lru-cache.ts";

describe("what an isolate remembers (its memory is shared by all applications)", () => {
  it("a cache keeps at most its limit of entries, the most recently used", () => {
    const cache = new LruCache<number>(2);
    cache.set("old", 1);
    cache.set("used", 2);
    expect(cache.get("old")).toBe(1);
    cache.set("new", 3);
    expect(["old", "used", "new"].map((key) => cache.get(key))).toEqual([1, undefined, 3]);
  });

  it("a cache keeps as many entries when one is set anew, with its newest value", () => {
    const cache = new LruCache<number>(2);
    cache.set("one", 1);
    cache.set("two", 2);
    cache.set("one", 3);
    cache.set("three", 4);
    expect(["one", "two", "three"].map((key) => cache.get(key))).toEqual([3, undefined, 4]);
  });

  it("a cache loses nothing to look-ups of what it does not have", () => {
    const cache = new LruCache<number>(2);
    cache.set("one", 1);
    for (let count = 0; count < 10; count++) expect(cache.get(`missing ${count}`)).toBeUndefined();
    cache.set("two", 2);
    expect(["one", "two"].map((key) => cache.get(key))).toEqual([1, 2]);
  });

  it("a cache no longer has what was deleted, and keeps the rest", () => {
    const cache = new LruCache<number>(2);
    cache.set("one", 1);
    cache.set("two", 2);
    cache.delete("one");
    expect(["one", "two"].map((key) => cache.get(key))).toEqual([undefined, 2]);
  });
});
