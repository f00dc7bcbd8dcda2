/** The age at which a code is renewed while the page is in view. */
const RENEW_SECONDS = 30;
/** A code is renewed this long before its signature expires. */
const BEFORE_END_SECONDS = 10;

/** A badge signature to show at a door. */
export interface Code {
  jwt: string;
  /** When it was received, in milliseconds by the phone's clock. The clock may be wrong, so only differences count. */
  takenAt: number;
  renewAfterSeconds: number;
}

export function codeOf(jwt: string, now: number): Code {
  const lifetime = lifetimeOf(jwt);
  const renewAfterSeconds = lifetime === null ? RENEW_SECONDS : Math.min(RENEW_SECONDS, lifetime - BEFORE_END_SECONDS);
  return { jwt, takenAt: now, renewAfterSeconds: Math.max(1, renewAfterSeconds) };
}

/** Seconds between `iat` and `exp`, both by the service's clock; null if it does not expire. */
function lifetimeOf(jwt: string): number | null {
  const claims: unknown = JSON.parse(atob((jwt.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/")));
  if (typeof claims !== "object" || claims === null || !("iat" in claims && "exp" in claims)) return null;
  const { iat, exp } = claims;
  return typeof iat === "number" && typeof exp === "number" ? exp - iat : null;
}
