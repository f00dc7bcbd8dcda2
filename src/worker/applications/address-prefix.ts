const IPV6_GROUPS = 8;

/**
 * One client for limits by address (contract section 7): an IPv4 address, or the /64 of an IPv6 address, because a
 * subscriber has at least a /64 (RFC 6177). Every spelling of an address gives the same result (RFC 4291 section 2.2),
 * and an IPv4-mapped address gives the IPv4 address.
 *
 * @param address from `cf-connecting-ip`; other text is returned unchanged
 */
export function addressPrefix(address: string): string {
  const groups = parseIpv6(address);
  if (groups === null) return address;
  const isIpv4Mapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  if (isIpv4Mapped) {
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 0xff])
      .join(".");
  }
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** The eight groups of an address; null if the text is not an address. */
function parseIpv6(address: string): number[] | null {
  const [withoutZone = ""] = address.split("%");
  const halves = withoutZone.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = halves.map(parseGroups);
  if (!head || tail === null) return null;
  if (tail === undefined) return head.length === IPV6_GROUPS ? head : null;
  const omitted = IPV6_GROUPS - head.length - tail.length;
  return omitted < 1 ? null : [...head, ...Array.from({ length: omitted }, () => 0), ...tail];
}

/** The groups between two "::"; the last one may be an IPv4 address, which is two groups. Null for anything else. */
function parseGroups(text: string): number[] | null {
  if (text === "") return [];
  const groups: number[] = [];
  for (const part of text.split(":")) {
    const ipv4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(part)?.slice(1).map(Number);
    if (ipv4) {
      const [a = 0, b = 0, c = 0, d = 0] = ipv4;
      groups.push((a << 8) | b, (c << 8) | d);
    } else if (/^[0-9a-f]{1,4}$/i.test(part)) {
      groups.push(Number.parseInt(part, 16));
    } else {
      return null;
    }
  }
  return groups;
}
