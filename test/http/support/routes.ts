import { openApiDocument } from "../../../src/docs-page/openapi/document.ts";
import { ahead, HOUR } from "../../support/clock.ts";

/** A route of /openapi.json, which openapi.test.ts compares with what the service has. */
export interface Route {
  /** Such as `GET /v1/badges/{id}`. */
  name: string;
  method: string;
  /** With the query that it requires. */
  path: string;
  /** Who calls it, as its header parameters say; null: anybody, without naming an application in a header. */
  by: "device" | "server" | "either" | null;
  /** The status and code of each answer that is listed, as `outcome` writes them. */
  answers: string[];
}

/** The one table of routes: a test that promises something of every route goes through it. */
export const ROUTES: readonly Route[] = Object.entries(openApiDocument(Date.now()).paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, { parameters = [], responses }]) => {
    const secret = parameters.find(({ name }) => name === "applicationsecret");
    const callers = { server: secret?.required === true, either: secret !== undefined };
    const isOfApplication = parameters.some(({ name }) => name === "applicationid");
    const query = parameters.filter(({ in: place, required }) => place === "query" && required);
    return {
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path: path + query.map(({ name, example }) => `?${name}=${String(example)}`).join(""),
      by: isOfApplication ? (callers.server ? "server" : callers.either ? "either" : "device") : null,
      answers: Object.entries(responses).flatMap(([status, { content }]) => {
        const codes = Object.keys(content?.["application/json"]?.examples ?? {});
        return Number(status) < 400 ? [status] : codes.map((code) => `${status} ${code}`);
      }),
    };
  }),
);

/** What a call is about, by the word before `{id}` in its path. */
export interface Subjects {
  application: string;
  badge: string;
  user: string;
  invitation: string;
  event: string;
}

/** Nothing that exists. */
export const NOTHING: Subjects = {
  application: "app_00000000000000000000",
  ...{ badge: "17", user: "user", invitation: "inv_unknown", event: "evt_unknown" },
};

const BODIES: Record<string, (subjects: Subjects) => object> = {
  "POST /v1/badge": ({ user }) => ({ userId: user }),
  "POST /v1/badge/sign": () => ({ base64: "AAAA" }),
  "POST /v1/invitation": () => ({ expiresAt: ahead(HOUR) }),
  "POST /v1/invitations": () => ({ invitations: [{ expiresAt: ahead(HOUR) }] }),
  "PATCH /v1/badges/{id}": () => ({ expiresAt: null }),
};

/** The path and the body of a call that is granted to whoever may make it. */
export function requestOf({ name, path }: Route, subjects: Subjects): { path: string; body?: object } {
  const body = BODIES[name]?.(subjects);
  return {
    path: path
      .replace("{applicationId}", subjects.application)
      .replace("{n}", "0")
      .replace(/(badge|user|invitation|event)(s?)\/\{id\}/, (_, kind: Exclude<keyof Subjects, "application">, s) => {
        return `${kind}${s}/${subjects[kind]}`;
      }),
    ...(body && { body }),
  };
}
