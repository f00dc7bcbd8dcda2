import { PUBLIC_CACHE_SECONDS } from "../../shared/limits/request-limits.ts";
import { EXAMPLE_JWK } from "../../shared/openapi-examples.ts";
import { APPLICATION_ID_IN_PATH, BY_ANYBODY } from "./components.ts";
import { schemaRef } from "./json-schemas.ts";
import { commonHeaders, errorResponses, headerRef, json } from "./parts.ts";
import type { Operation, Schema } from "./types.ts";

/** Routes without credentials. */

const KEY_SET_ROUTE = { anyOrigin: true };
const SERVICE_ROUTE = { anyOrigin: false };
const REFERENCE_ROUTE = { anyOrigin: false, cacheControl: "Cached" } as const;

export const getKeySet = (): Operation => ({
  operationId: "getKeySet",
  tags: ["Keys"],
  summary: "Public keys to verify signatures",
  description: `Door controllers and servers fetch this to verify signatures offline. It is a JWK Set (RFC 7517) of every key that the application ever had. A badge keeps the key that it was issued with; badges issued after a rotation get the newer key. So keep old keys. When a \`kid\` is unknown, fetch the set again, at most once in ${PUBLIC_CACHE_SECONDS} seconds.

A disabled application keeps its key set: it gets no new signatures, but doors still check the old ones. No credentials are needed, since public keys are no secret.`,
  security: BY_ANYBODY,
  parameters: [APPLICATION_ID_IN_PATH],
  responses: {
    "200": {
      description: "The key set.",
      headers: commonHeaders({ ...KEY_SET_ROUTE, cacheControl: "Cached" }),
      content: json(schemaRef("JwkSet"), { "One key": { keys: [EXAMPLE_JWK] } }),
    },
    ...errorResponses(KEY_SET_ROUTE, ["UNKNOWN_APPLICATION", "RATE_LIMITED", "UNAVAILABLE"]),
  },
});

export const getHealth = (): Operation => ({
  operationId: "getHealth",
  tags: ["Service"],
  summary: "Whether the service works",
  description: "For monitoring: 200 when the service and its database respond.",
  security: BY_ANYBODY,
  responses: {
    "200": {
      description: "It works.",
      headers: {
        ...commonHeaders(SERVICE_ROUTE),
        Release: {
          description: "The release that responds, and what it was built from. Absent in local development.",
          required: false,
          schema: { type: "string", examples: ["0.9.0+1f0c93ab77de"] },
        },
      },
      content: json(schemaRef("Health"), { "It works": { status: "ok" } }),
    },
    ...errorResponses(SERVICE_ROUTE, ["UNAVAILABLE"]),
  },
});

/** Only a rough schema, because OpenAPI documents have their own specification. */
const DOCUMENT_SCHEMA: Schema = {
  type: "object",
  properties: {
    openapi: { type: "string", const: "3.1.0", examples: ["3.1.0"] },
    info: { type: "object", description: "Title, version and guide." },
    paths: { type: "object", description: "The routes." },
  },
  required: ["openapi", "info", "paths"],
  additionalProperties: true,
};

export const getOpenApi = (): Operation => ({
  operationId: "getOpenApi",
  tags: ["Service"],
  summary: "This document",
  description: "OpenAPI 3.1, made from the schemas that validate requests. For generators of clients, mocks and tests.",
  security: BY_ANYBODY,
  responses: {
    "200": {
      description: "The document.",
      headers: { ...commonHeaders(REFERENCE_ROUTE), ETag: headerRef("FileTag") },
      content: json(DOCUMENT_SCHEMA, {
        "Its beginning": {
          openapi: "3.1.0",
          info: { title: "Badge Distribution Service", version: "1.0.0" },
          paths: {},
        },
      }),
    },
    ...errorResponses(SERVICE_ROUTE, ["UNAVAILABLE"]),
  },
});

export const getDocs = (): Operation => ({
  operationId: "getDocs",
  tags: ["Service"],
  summary: "This document as a page",
  description: "For people: the reference, where every call can be tried. It loads nothing from any other host.",
  security: BY_ANYBODY,
  responses: {
    "200": {
      description: "The page.",
      headers: { ...commonHeaders(REFERENCE_ROUTE), ETag: headerRef("FileTag") },
      content: {
        "text/html": {
          schema: { type: "string" },
          examples: { "a-page": { summary: "Its beginning", value: "<!doctype html>" } },
        },
      },
    },
    ...errorResponses(SERVICE_ROUTE, ["UNAVAILABLE"]),
  },
});
