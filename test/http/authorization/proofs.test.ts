import { afterEach, describe, expect, it, vi } from "vitest";
import { BADGE, expectInvalidProof, newPhone, outcome, type Phone, readBadge, SIGN } from "../../bound/support.ts";
import { createApplication } from "../../support/application.ts";
import { runSql } from "../../support/home.ts";
import type { Answer } from "../../support/http.ts";

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

type Caller = keyof typeof CALLERS;

/** Who may use a badge, by login and by signing. A proof that is none is refused wherever it is presented. */
const GRANTED_TO: [badge: string, granted: readonly Caller[]][] = [
  ["a bound badge", ["owner"]],
  ["an unbound badge", ["owner", "nobody", "stranger"]],
  ["a bound badge of an application that requires proofs", ["owner"]],
  ["an unbound badge of an application that requires proofs", []],
];

describe("whose key may use a badge (contract section 15)", () => {
  it.each(GRANTED_TO)("%s: %j", async (kind, granted) => {
    const application = await createApplication();
    const owner = await newPhone(application);
    const stranger = await owner.withOtherKey();
    const isBound = kind.startsWith("a bound");
    const issued = isBound ? await owner.logIn() : await owner.logInUnproved();
    expect(issued.status).toBe(201);
    if (kind.endsWith("requires proofs")) {
      await runSql("UPDATE application SET require_proof = 1 WHERE id = ?", application.id);
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 30_000 });
    }
    const callers = Object.entries(CALLERS).map(async ([name, caller]) => {
      const prove = caller(owner, stranger);
      const answers: Answer[] = [];
      for (const [path, body] of [
        [BADGE, '{"userId":"alice"}'],
        [SIGN, '{"base64":"AAAA"}'],
      ] as const) {
        answers.push(await owner.send(path, body, { DPoP: await prove(path, body) }));
      }
      const isGranted = answers.every((answer) => outcome(answer) === `200 ${issued.body.badgeId}`);
      if (!isGranted) for (const answer of answers) expectInvalidProof(answer);
      return isGranted ? [name] : [];
    });
    expect((await Promise.all(callers)).flat()).toEqual(granted);
    const { keyThumbprint } = await readBadge(application, String(issued.body.badgeId));
    expect(keyThumbprint).toBe(isBound ? await owner.thumbprint() : undefined);
  });
});
