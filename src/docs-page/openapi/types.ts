import type { z } from "zod";

/** The parts of OpenAPI 3.1 that the document uses. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** JSON Schema 2020-12. */
export type Schema = z.core.JSONSchema.BaseSchema;

export interface Reference {
  $ref: string;
}

export interface Example {
  summary: string;
  value: Json;
}

export interface MediaType {
  schema: Schema;
  examples: Record<string, Example>;
}

export interface Header {
  description: string;
  /** Whether every response of this status has it. */
  required: boolean;
  schema: Schema;
  example?: Json;
}

export interface ResponseObject {
  description: string;
  headers?: Record<string, Header | Reference>;
  content?: Record<string, MediaType>;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  description: string;
  required: boolean;
  schema: Schema;
  example?: Json;
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  /** Alternatives, each of which needs all of its schemes. */
  security: Record<string, string[]>[];
  parameters?: Parameter[];
  requestBody?: { description: string; required: boolean; content: Record<string, MediaType> };
  responses: Record<string, ResponseObject>;
}

type Method = "get" | "post" | "patch";

export type PathItem = Partial<Record<Method, Operation>>;

export type SecurityScheme =
  | { type: "apiKey"; in: "header"; name: string; description: string }
  | { type: "http"; scheme: "bearer"; bearerFormat: "JWT"; description: string };

export interface OpenApiDocument {
  openapi: "3.1.0";
  info: { title: string; version: string; summary: string; description: string };
  jsonSchemaDialect: string;
  servers: { url: string; description: string }[];
  security: Record<string, string[]>[];
  tags: { name: string; description: string }[];
  paths: Record<string, PathItem>;
  webhooks: Record<string, PathItem>;
  components: {
    schemas: Record<string, Schema>;
    headers: Record<string, Header>;
    securitySchemes: Record<string, SecurityScheme>;
  };
}
