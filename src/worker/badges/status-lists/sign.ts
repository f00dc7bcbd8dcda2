import { currentSigningKey } from "../../../shared/credentials.ts";
import { STATUS_BITS, STATUS_LIST_TTL_SECONDS } from "../../../shared/limits/status-list-limits.ts";
import type { Application } from "../../applications/application-cache.ts";
import type { Context } from "../../context.ts";
import { JwtHeaders, signJwt } from "../../keys/own-jwt.ts";
import type { BuiltList } from "./build.ts";

/** `typ` of a status list (draft-ietf-oauth-status-list-20 section 5.1). */
const HEADERS = new JwtHeaders("statuslist+jwt");

/** Signs with the key of new badges, which every cached key set has (contract section 10). */
export async function signList(
  { unsealedKeys }: Context,
  application: Application,
  { uri, lst, change, builtAt }: Pick<BuiltList, "lst" | "change"> & { uri: string; builtAt: number },
): Promise<string> {
  const key = currentSigningKey(application.signingKeys, builtAt);
  const issuedAt = Math.floor(builtAt / 1000);
  const claims = {
    sub: uri,
    iat: issuedAt,
    exp: issuedAt + application.statusLifetimeSeconds,
    ttl: STATUS_LIST_TTL_SECONDS,
    change,
    status_list: { bits: STATUS_BITS, lst },
  };
  return signJwt(HEADERS.of(key), claims, await unsealedKeys.signingKey(application.id, key.kid, key));
}
