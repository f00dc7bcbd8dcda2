import type { Rules } from "../../../../src/worker/allocator/commands.ts";
import { FreshNumbers } from "../../../../src/worker/allocator/fresh-numbers.ts";
import { standIn } from "../../stand-in.ts";
import { rootKeyOf, STRANGER } from "../invariants/history.ts";
import { Member } from "../member.ts";
import type { ApplicationPlan } from "../plan.ts";
import { hmacKey } from "../platform/globals.ts";
import { insertInto } from "../platform/sqlite.ts";

/** How far ahead of the last number that D1 knows of a number is planted, at most. */
const MAX_AHEAD = 3;

interface Part {
  first: number;
  size: number;
  used: number;
}

/** Puts another application's badges under numbers that an application is about to draw, as a damaged register would. */
export class Planter extends Member {
  readonly #dice = this.world.dice.of("planter");
  readonly planted: { applicationId: string; number: number }[] = [];

  async plant(application: ApplicationPlan): Promise<void> {
    const { d1, trace } = this.world;
    const { id } = application;
    const known: Part[] = JSON.parse(String(d1.headOf(id)?.range_segments));
    const [part] =
      known.length > 0 ? known : [{ first: application.firstNumber, size: application.numbersAtFirst, used: 0 }];
    if (!part) return;
    const index = part.used + this.#dice.below(MAX_AHEAD);
    if (index >= part.size) return;
    const numbers = new FreshNumbers(id, { rootKey: async () => hmacKey(rootKeyOf(id), "SHA-256") });
    const rules = standIn<Rules>("rules", { rootKey: { sealed: rootKeyOf(id), sealingVersion: 1 } });
    const numberAt = await numbers.forCommands([{ kind: "invite", rules, invitations: [] }]);
    const number = numberAt(part, index);
    // Somebody may have drawn it meanwhile.
    const drawn = "SELECT 1 FROM badge WHERE number = ?1 UNION SELECT 1 FROM freed_number WHERE number = ?1";
    if (d1.of(id).look(drawn, number).length > 0) return;
    trace.add("seed", `plants ${number}`);
    this.planted.push({ applicationId: id, number });
    const owner = { application_id: STRANGER, device: `stranger ${number}`, user_id: "stranger" };
    const badge = { number, ...owner, ordinal: 1, login_sequence: 1, issued_at: 0, change: 1, changed_at: 0 };
    d1.of(id).execute([insertInto("badge", badge)]);
    this.world.faults.struck++;
  }

  countOf(applicationId: string): number {
    return this.planted.filter((planted) => planted.applicationId === applicationId).length;
  }
}
