import { Dice } from "../dice.ts";
import { kindOfRound } from "./actors/restoration.ts";
import { makePlan } from "./plan.ts";

/** Kinds of seeds: what happens in them, besides faults. */
export type Kind = "ancient" | "lost" | "restored" | "planted";

export function isOfKind(seed: number, kind: Kind): boolean {
  const dice = new Dice(seed);
  const plan = makePlan(dice.of("plan"));
  if (kind === "planted") return plan.plantChance > 0;
  return plan.restorations > 0 && kindOfRound(dice.of("restorations 0"), plan) === kind;
}
