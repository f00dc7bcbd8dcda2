import type { HistoryActor } from "../../client/index.ts";
import { Plainly } from "../parts/identity.tsx";
import { actorParts } from "./action-names.ts";

/** Who did it, and who vouches for that. */
export function By({ actor }: { actor: HistoryActor }) {
  const { first, second } = actorParts(actor);
  return (
    <>
      <Plainly text={first} />
      {second !== undefined && (
        <span class="second">
          <Plainly text={second} />
        </span>
      )}
    </>
  );
}
