import type { Context as HonoContext } from "hono";
import { homeOf } from "../../shared/homes.ts";
import type { Application } from "../applications/application-cache.ts";
import { header } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";

/**
 * The home's number, a dot, and D1's bookmark (D1: Sessions API). The pattern excludes `first-unconstrained`, which D1 would also
 * accept.
 */
const FORM = /^([1-9]\d{0,2})\.([\da-f]{8}-[\da-f]{8}-[\da-f]{8}-[\da-f]{32})$/;

/** The caller's D1 bookmark for the application's home; null if it sent none for this home. */
export function readBookmark(c: HonoContext<HttpEnv>, { id }: Application): string | null {
  return parseBookmark(header(c, "bookmark") ?? "", homeOf(id));
}

/** @returns null if the text is malformed, or of another home */
export function parseBookmark(text: string, ofHome: number): string | null {
  const [, home, bookmark] = FORM.exec(text) ?? [];
  return Number(home) === ofHome && bookmark !== undefined ? bookmark : null;
}

/** Sends the caller the bookmark of its call's reads and writes, if known. */
export function withBookmark(c: HonoContext<HttpEnv>, { id }: Application, response: Response): Response {
  const { bookmark } = c.get("context").db;
  if (bookmark !== null) response.headers.set("bookmark", `${homeOf(id)}.${bookmark}`);
  return response;
}
