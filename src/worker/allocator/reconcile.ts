import type { AllocatorCommand, Reconciliation } from "../../shared/script-commands.ts";
import { Unavailable } from "../platform.ts";
import type { Engine, EngineParts } from "./engine.ts";
import { readHead } from "./replica/head.ts";
import { Verification } from "./replica/verify.ts";

/** `reconcile ID [--verify] [--republish]`: where both sides are (contract section 21). @throws Unavailable */
export async function reconcile(
  engine: Engine,
  parts: EngineParts,
  { verify, republish }: Extract<AllocatorCommand, { kind: "reconcile" }>,
): Promise<Reconciliation> {
  const { applicationId, log, openDatabase, bytes } = parts;
  const before = await readHead(openDatabase(), applicationId);
  engine.doubt();
  await engine.settle();
  if (republish && before) {
    await engine.republish();
    await engine.settle();
  }
  const state = stateOf(engine.replicator);
  const isInSync = state === "in-sync";
  const allocator = log.head()?.sequence ?? 0;
  const verification = new Verification();
  if (verify && isInSync) {
    await engine.addJob(() => verification.step({ ...parts, db: openDatabase() }));
  }
  return {
    kind: "reconciled",
    state,
    allocator,
    d1: (isInSync ? allocator : before?.sequence) ?? null,
    logSince: log.oldestKeptAt(),
    bytes: bytes(),
    republished: republish && isInSync,
    skipped: 0,
    differences: verify && isInSync ? verification.differences : null,
  };
}

/** @throws Unavailable when D1 does not respond */
function stateOf({ position, isRefused }: Engine["replicator"]): Reconciliation["state"] {
  switch (position.kind) {
    case "following":
      return "in-sync";
    case "not-in-log":
      return "database-unknown";
    case "uncertain":
      if (isRefused) return "entry-refused";
      throw new Unavailable("D1", null);
  }
}
