import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BADGE, newPhone, outcome, type Phone, SIGN } from "../../bound/support.ts";
import { createApplication } from "../../support/application.ts";
import { homeDatabase } from "../../support/home.ts";
import type { Answer } from "../../support/http.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

afterEach(() => {
  vi.useRealTimers();
});

/** Who presents what, all with the right application ID and udid. */
const CALLERS = {
  owner: (owner) => owner.prove.bind(owner),
  nobody: () => async () => "",
  stranger: (_, stranger) => stranger.prove.bind(stranger),
  forger: () => async () => "forged",
  /** Has recorded the owner's proof of another body. */
  listener: (owner) => (path) => owner.prove(path, "{}"),
} satisfies Record<string, (owner: Phone, stranger: Phone) => (path: string, body: string) => Promise<string>>;

type Outcomes = Record<keyof typeof CALLERS, [login: string, sign: string]>;

const GRANTED = "200";
const REFUSED = "401 INVALID_PROOF";

/** By whom a badge may be used. A proof that is none is refused wherever it is presented. */
const EXPECTED: Record<string, Outcomes> = {
  "a bound badge": {
    owner: [GRANTED, GRANTED],
    nobody: [REFUSED, REFUSED],
    stranger: [REFUSED, REFUSED],
    forger: [REFUSED, REFUSED],
    listener: [REFUSED, REFUSED],
  },
  "an unbound badge": {
    owner: [GRANTED, GRANTED],
    nobody: [GRANTED, GRANTED],
    stranger: [GRANTED, GRANTED],
    forger: [REFUSED, REFUSED],
    listener: [REFUSED, REFUSED],
  },
  "a bound badge of an application that requires proofs": {
    owner: [GRANTED, GRANTED],
    nobody: [REFUSED, REFUSED],
    stranger: [REFUSED, REFUSED],
    forger: [REFUSED, REFUSED],
    listener: [REFUSED, REFUSED],
  },
  "an unbound badge of an application that requires proofs": {
    owner: [REFUSED, REFUSED],
    nobody: [REFUSED, REFUSED],
    stranger: [REFUSED, REFUSED],
    forger: [REFUSED, REFUSED],
    listener: [REFUSED, REFUSED],
  },
};

describe("whose key may use a badge (contract section 15)", () => {
  it.each(Object.entries(EXPECTED))("%s", async (kind, expected) => {
    const application = await createApplication();
    const owner = await newPhone(application);
    const stranger = await owner.withOtherKey();
    const issued = kind.startsWith("a bound") ? await owner.logIn() : await owner.logInUnproved();
    expect(issued.status).toBe(201);
    if (kind.endsWith("requires proofs")) {
      await homeDatabase().prepare("UPDATE application SET require_proof = 1 WHERE id = ?").bind(application.id).run();
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 30_000 });
    }
    const statusOf = (answer: Answer) => (answer.status < 300 ? String(answer.status) : outcome(answer));
    const outcomes = await Promise.all(
      Object.entries(CALLERS).map(async ([name, caller]) => {
        const prove = caller(owner, stranger);
        const send = async (path: string, body: string) =>
          statusOf(await owner.send(path, body, { DPoP: await prove(path, body) }));
        return [name, [await send(BADGE, '{"userId":"alice"}'), await send(SIGN, '{"base64":"AAAA"}')]];
      }),
    );
    expect(Object.fromEntries(outcomes)).toEqual(expected);
  });
});
