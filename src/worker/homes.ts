import * as z from "zod";
import { databaseBindingOf, HOME_PLACE, queueBindingOf } from "../shared/homes.ts";
import type { DeliveryMessage } from "./webhooks/delivery-message.ts";

/** A home that this Worker is bound to. */
export interface Home {
  number: number;
  d1: D1Database;
  /** The variable `HOME_<number>`, which `objectPlace` reads. */
  place: unknown;
}

const BINDING = /^DB_([2-9]|[1-9]\d{1,2})$/;

/** Home 1, which every deployment has. */
export const firstHome = (env: Env): Home => ({ number: 1, d1: env.DB, place: Reflect.get(env, "HOME_1") });

/** @returns undefined if no such home is bound */
export function findHome(env: Env, number: number): Home | undefined {
  const d1: unknown = Reflect.get(env, databaseBindingOf(number));
  return isD1(d1) ? { number, d1, place: Reflect.get(env, `HOME_${number}`) } : undefined;
}

/** Every home that is bound, home 1 first. */
export function homesOf(env: Env): [Home, ...Home[]] {
  const others = Object.keys(env)
    .flatMap((name) => BINDING.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((one, other) => one - other);
  return [firstHome(env), ...others.flatMap((number) => findHome(env, number) ?? [])];
}

/** The generated types of the environment contain only the homes of local development. */
function isD1(binding: unknown): binding is D1Database {
  return typeof binding === "object" && binding !== null && "prepare" in binding && "batch" in binding;
}

/** The queue that a home's messages go to: its own if one is bound, else home 1's. */
export function queueOf(env: Env, home: number): Queue<DeliveryMessage> {
  const own: unknown = Reflect.get(env, queueBindingOf(home));
  return isQueue(own) ? own : env.WEBHOOKS;
}

/** The generated types of the environment contain only the queues of local development. */
function isQueue(binding: unknown): binding is Queue<DeliveryMessage> {
  return typeof binding === "object" && binding !== null && "send" in binding && "sendBatch" in binding;
}

/** Where the platform makes the objects of a home; if empty, near the first caller. */
interface ObjectPlace {
  locationHint?: DurableObjectLocationHint;
  jurisdiction?: DurableObjectJurisdiction;
}

/** The values that Cloudflare lists (Durable Objects: Data location). */
const locationHint = z.enum([
  ...(["wnam", "enam", "sam", "weur", "eeur", "apac", "apac-ne", "apac-se", "oc", "afr", "me"] as const),
]) satisfies z.ZodType<DurableObjectLocationHint>;
const jurisdiction = z.enum(["eu", "us", "fedramp"]) satisfies z.ZodType<DurableObjectJurisdiction>;

/**
 * Reads the place of a home's objects: `location=weur`, `jurisdiction=eu`, or an empty text.
 *
 * @throws Error for anything else: an object that was made in the wrong place stays there
 */
export function objectPlace({ number, place }: Pick<Home, "number" | "place">): ObjectPlace {
  if (place === undefined || place === "") return {};
  const [, kind, name] = HOME_PLACE.exec(String(place)) ?? [];
  if (kind === "location") return { locationHint: locationHint.parse(name) };
  if (kind === "jurisdiction") return { jurisdiction: jurisdiction.parse(name) };
  throw new Error(`HOME_${number} is neither location=… nor jurisdiction=…`);
}

/** A new stub of a home's object. The object's first call decides where it is made: in the home's place. */
export function objectOf<Class extends Rpc.DurableObjectBranded>(
  namespace: DurableObjectNamespace<Class>,
  home: Pick<Home, "number" | "place">,
  name: string,
): DurableObjectStub<Class> {
  const { locationHint, jurisdiction } = objectPlace(home);
  const placed = jurisdiction ? namespace.jurisdiction(jurisdiction) : namespace;
  return placed.getByName(name, locationHint && { locationHint });
}
