import { compress, ENTRIES, packStatuses, STATUSES } from "./status-tokens.ts";

/** A list's bytes, apart from any JWT: `statuses` are the entries that are not zero. */
export interface StatusListEncoding {
  name: string;
  bits: number;
  /** Of the draft also lists whose entries do not have two bits. */
  lst: string;
  entries: number;
  statuses: Record<string, number>;
}

/** The examples of draft-ietf-oauth-status-list sections 4.1 and 4.2 and of its appendix, and a list of the service. */
export function statusListEncodings(): StatusListEncoding[] {
  const DRAFT = "draft-ietf-oauth-status-list";
  const ofEntries = (values: readonly number[]): Record<string, number> =>
    Object.fromEntries(values.map((value, index) => [index, value]).filter(([, value]) => value !== 0));
  const large = {
    0: 1,
    1993: 2,
    25460: 1,
    159495: 3,
    495669: 1,
    554353: 1,
    645645: 2,
    723232: 1,
    854545: 1,
    934534: 2,
    1000345: 3,
  };
  const oneBit = [1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1];
  const twoBits = [1, 2, 0, 3, 0, 1, 0, 1, 1, 2, 3, 3];
  const encoded = (name: string, bits: number, entries: number, statuses: Record<string, number>) => {
    const lst = compress(packStatuses(entries, bits, statuses)).toString("base64url");
    return { name, bits, lst, entries, statuses };
  };
  return [
    { name: `${DRAFT}, 1 bit`, bits: 1, lst: "eNrbuRgAAhcBXQ", entries: 16, statuses: ofEntries(oneBit) },
    { name: `${DRAFT}, 2 bits`, bits: 2, lst: "eNo76fITAAPfAgc", entries: 12, statuses: ofEntries(twoBits) },
    encoded(`${DRAFT}, 2 bits, 2^20 entries`, 2, 2 ** 20, large),
    encoded("4 bits", 4, 16, { 0: 15, 1: 1, 14: 8, 15: 2 }),
    encoded("8 bits", 8, 4, { 1: 255, 3: 128 }),
    encoded("a list of the service", 2, ENTRIES, STATUSES),
  ];
}
