import { expect } from "vitest";
import {
  type Change,
  type Draft,
  inParallel,
  outcome,
  send,
  withBody,
  withField,
  withHeader,
  withPath,
  withQuery,
} from "./draft.ts";

/**
 * Something wrong with a call. `parts` are the pieces of the call it touches, "body.userId" for a field and "body" for all of
 * it: two faults of one piece exclude each other, all others can come together.
 */
export interface Fault {
  name: string;
  parts: readonly string[];
  /** Status and code, as `outcome` writes them. */
  answer: string;
  /** The ways to make this mistake. The first stands for all of them where faults come in pairs. */
  variants: readonly [Change, ...Change[]];
}

/** A header that is missing, in each of the ways that count as that (contract section 2). */
export function missingHeader(name: string, answer: string, parts: readonly string[] = [name]): Fault {
  const variants = [withHeader(name, null), withHeader(name, ""), withHeader(name, " \t ")] as const;
  return { name: `no ${name}`, parts, answer, variants };
}

/** A field that is missing, in each of the ways that count as that (contract section 2). */
export function missingField(name: string, answer: string): Fault {
  const [absent, ...counted] = [undefined, null, "", " \t\n"].map((value) => withField(name, value));
  return { name: `no ${name}`, parts: [`body.${name}`], answer, variants: [absent ?? withBody("{}"), ...counted] };
}

export function faultyHeader(name: string, [first, ...others]: readonly [string, ...string[]], answer: string): Fault {
  const variants = [withHeader(name, first), ...others.map((value) => withHeader(name, value))] as const;
  return { name: `${name} ${first.slice(0, 20)}`, parts: [name], answer, variants };
}

export function faultyField(name: string, [first, ...others]: readonly [unknown, ...unknown[]], answer: string): Fault {
  const variants = [withField(name, first), ...others.map((value) => withField(name, value))] as const;
  return { name: `${name} ${JSON.stringify(first).slice(0, 40)}`, parts: [`body.${name}`], answer, variants };
}

export function faultyQuery(name: string, [first, ...others]: readonly [string, ...string[]], answer: string): Fault {
  const variants = [withQuery(name, first), ...others.map((value) => withQuery(name, value))] as const;
  return { name: `${name}=${first}`, parts: [name], answer, variants };
}

export function faultyPath(name: string, path: string, answer: string): Fault {
  return { name, parts: ["path"], answer, variants: [withPath(path)] };
}

/** Bodies that are not a JSON object. */
export const FAULTY_BODY: Fault = {
  name: "body not an object",
  parts: ["body"],
  answer: "400 INVALID_JSON",
  variants: [withBody("[]"), withBody('{"userId":'), withBody('"text"'), withBody("null")],
};

export const FAULTY_UDID: Fault = faultyHeader("udid", ["bell \u0007", "u".repeat(256)], "422 INVALID_UDID");

function canMeet(one: Fault, other: Fault): boolean {
  const isWithin = (part: string, whole: string) => part === whole || part.startsWith(`${whole}.`);
  return !one.parts.some((part) => other.parts.some((place) => isWithin(part, place) || isWithin(place, part)));
}

/** Each fault alone answers its own code; each pair that can come together answers the code of the earlier one. */
export async function expectInOrder(grantedCall: () => Draft, faults: readonly Fault[]): Promise<void> {
  const alone = faults.flatMap(({ name, answer, variants }) =>
    variants.map((change, place) => ({ name: `${name} (${place + 1})`, draft: change(grantedCall()), answer })),
  );
  const pairs = faults.flatMap((first, place) =>
    faults
      .slice(place + 1)
      .filter((second) => canMeet(first, second))
      .map((second) => ({
        name: `${first.name} + ${second.name}`,
        draft: second.variants[0](first.variants[0](grantedCall())),
        answer: first.answer,
      })),
  );
  const cases = [...alone, ...pairs];
  const answers = await inParallel(cases, async ({ name, draft }) => `${name}: ${outcome(await send(draft))}`);
  expect(answers).toEqual(cases.map(({ name, answer }) => `${name}: ${answer}`));
}
