import type { Context as HonoContext } from "hono";
import { homeOf } from "../../shared/homes.ts";
import type { Application } from "../applications/application-cache.ts";
import { header } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";

/** The home, and a bookmark as D1 words it (D1: Sessions API). D1 would take `first-unconstrained` for one, too. */
const FORM = /^([1-9]\d{0,2})\.([\da-f]{8}-[\da-f]{8}-[\da-f]{8}-[\da-f]{32})$/;

/** The caller's bookmark of the application's home, as D1 words it; null: it sent none of this home. */
export function readBookmark(c: HonoContext<HttpEnv>, { id }: Application): string | null {
  const text = header(c, "bookmark");
  return text === null ? null : parseBookmark(text, homeOf(id));
}

/** @returns null for a malformed one, or another home's */
export function parseBookmark(text: string, ofHome: number): string | null {
  const [, home, bookmark] = FORM.exec(text) ?? [];
  return Number(home) === ofHome && bookmark !== undefined ? bookmark : null;
}

/** Gives the caller the bookmark of what its call has seen or written, if it is known. */
export function withBookmark(c: HonoContext<HttpEnv>, { id }: Application, response: Response): Response {
  const { bookmark } = c.get("context").db;
  if (bookmark !== null) response.headers.set("bookmark", `${homeOf(id)}.${bookmark}`);
  return response;
}
