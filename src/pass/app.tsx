import { useEffect, useState } from "preact/hooks";
import type { DescribedInvitation } from "../client/index.ts";
import { drawQr } from "../shared/qr-code.ts";
import type { Invited } from "./link.ts";
import { type Shown, Visit } from "./visit.ts";
import { ageWords, timeWords, words } from "./words.ts";

/** The page: one sentence, the code, and the facts of the visit. @param invited null if the link was cut off */
export function App({ invited, baseUrl }: { invited: Invited | null; baseUrl: string }) {
  const [shown, setShown] = useState<Shown>({ ...NOTHING, state: invited === null ? "unknown" : "loading" });
  const [visit] = useState(() => (invited === null ? null : new Visit(invited, baseUrl, setShown)));
  useEffect(() => visit?.start(), [visit]);
  const { invitation, code, isClaiming } = shown;
  const state = shown.state === "expired" && isOver(invitation) ? "ended" : shown.state;
  const isOld = code !== null && state !== "open";
  useSeconds(isOld);
  const codeAge = isOld ? ageWords(Math.max(0, Date.now() - code.takenAt) / 1000) : null;
  const { badgeStartsAt } = invitation ?? {};
  const begins = badgeStartsAt === undefined ? null : timeWords(badgeStartsAt);
  return (
    <>
      <h1>{words.heading}</h1>
      {/* The age changes every second, which a screen reader should not announce. */}
      <p class="state" role="status" aria-live={isOld ? "off" : "polite"}>
        {words.sentence(isClaiming ? "loading" : state, { begins, codeAge })}
      </p>
      {state === "invited" && (
        <button type="button" aria-disabled={isClaiming} onClick={() => void visit?.claim()}>
          {words.show}
        </button>
      )}
      {code !== null && <CodeImage jwt={code.jwt} />}
      {invitation !== null && <Facts invitation={invitation} />}
    </>
  );
}

const isOver = (invitation: DescribedInvitation | null): boolean =>
  invitation?.badgeExpiresAt !== undefined && Date.parse(invitation.badgeExpiresAt) <= Date.now();

const NOTHING: Omit<Shown, "state"> = { invitation: null, code: null, isClaiming: false };

function CodeImage({ jwt }: { jwt: string }) {
  const { size, path } = drawQr(jwt, "low");
  return (
    <svg class="code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={words.code} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}

/** Who is expected, where and when. */
function Facts({ invitation }: { invitation: DescribedInvitation }) {
  const { name, applicationName, badgeStartsAt, badgeExpiresAt } = invitation;
  const facts = [
    [words.visitor, name],
    [words.where, applicationName],
    [words.from, badgeStartsAt && timeWords(badgeStartsAt)],
    [words.until, badgeExpiresAt && timeWords(badgeExpiresAt)],
  ] as const;
  return (
    <dl>
      {facts.map(
        ([title, value]) =>
          value !== undefined && (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** Redraws every second. */
function useSeconds(isOn: boolean): void {
  const [, setTicks] = useState(0);
  useEffect(() => {
    if (!isOn) return undefined;
    const timer = setInterval(() => setTicks((ticks) => ticks + 1), 1000);
    return () => clearInterval(timer);
  }, [isOn]);
}
