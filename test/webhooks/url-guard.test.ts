import { describe, expect, it, test } from "vitest";
import { checkOutboundUrl, describeUrlRefusal, type UrlRefusal } from "../../src/shared/outbound-url.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";

/**
 * By reason; below each trick are its URLs, or the hosts to put between `https://` and `/hook`. `␠` stands for a space
 * inside a URL and `␤` for a line feed.
 */
const REFUSED_BY_REASON: Record<Exclude<UrlRefusal, "local-only">, string> = {
  "not-https": `
    # URLs: another scheme than https
    http://hooks.example.com/ HTTP://hooks.example.com/ http://hooks.example.com:443/ ftp://hooks.example.com/
    ws://hooks.example.com/ wss://hooks.example.com/ gopher://hooks.example.com:70/
    file://hooks.example.com/etc/passwd httpss://hooks.example.com/ ssh://hooks.example.com/ http://10.0.0.1/
    http://[::1]:8080/ http://0.0.0.0:8080/ http://127.0.0.2:8080/ http://localhost.:8080/ http://a.localhost:8080/
    http://localhost.example.com:8080/ http://2130706433:8080/ http://127.1:8080/ http://0x7f000001:8080/
    http://%6cocalhost:8080/ http://localhost:/`,
  "local-name": `
    # hosts: a local name
    localhost LOCALHOST LocalHost localhost. localhost:8443 hooks.localhost a.b.LOCALHOST hooks.localhost.
    printer.local PRINTER.LOCAL printer.local. printer.LoCaL. local internal internal. vault.internal Vault.INTERNAL
    vault.internal. metadata.google.internal metadata.google.internal. a-b.c-d.local xn--bcher-kva.local
    printer.lan PRINTER.LAN. nas.home.arpa nas.home.arpa. home.arpa nas.home mail.corp exchange.corp. a.intranet
    a.private a.localdomain a.onion intranet intranet. INTRANET intranet:8443 1.0.0.127.in-addr.arpa a.mail router.domain lan corp
    # hosts: a local name in percent-encoding or look-alike characters
    %6c%6f%63%61%6c%68%6f%73%74 %4cocalhost hooks%2elocalhost printer.%6cocal printer%2Elocal%2E
    printer.local%E3%80%82 ｌｏｃａｌｈｏｓｔ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ localhoſt 𝐥𝐨𝐜𝐚𝐥𝐡𝐨𝐬𝐭 ℓocalhost ｐｒｉｎｔｅｒ．ｌｏｃａｌ printer｡local
    printer。local printer.lo\u00adcal printer.lo\u200bcal printer.lo\u2060cal printer.lo\u034fcal printer.local\ufe0f
    vault.ⓘⓝⓣⓔⓡⓝⓐⓛ vault.ⁱnternal vault.ｉｎｔｅｒｎａｌ． vault．internal vault.INTERN\u{1d400}L`,
  "single-label": `
    # hosts: a single word as the host
    hooks printer kubernetes web-1 web_1 xn--bcher-kva bücher com 1e3 hooks:8443`,
  "ip-literal": `
    # hosts: an IPv4 address, plain
    127.0.0.1 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 255.255.255.255 1.1.1.1 8.8.8.8
    224.0.0.1 192.0.2.1 127.0.0.1:8443 127.0.0.1. 169.254.169.254.
    # hosts: an IPv4 address in decimal, octal, hex or short
    2130706433 2852039166 0 1 4294967295 017700000001 0177.0.0.1 0177.0.0.01 00000177.0.0.1 0x7f000001 0X7F000001
    0x7f.0.0.1 0x7f.0x0.0x0.0x1 0x7f.1 0x 0xa9fea9fe 0xa9.254.0251.254 127.1 127.0.1 10.1 192.168.257 2130706433.
    0x7f.1.
    # hosts: an IPv4 address in percent-encoding or look-alike characters
    %31%32%37.0.0.1 127%2e0%2e0%2e1 %32130706433 127.0.0.%EF%BC%91 １２７.０.０.１ 127。0。0。1 127．0．0．1 127｡0｡0｡1 ①②⑦.⓪.⓪.①
    ⑯⑨。②⑤④。⑯⑨｡②⑤④ ２１３０７０６４３３ 𝟏𝟐𝟕.𝟎.𝟎.𝟏 ¹²⁷.0.0.1 0ｘ7f.1 12\u00ad7.0.0.1 127\u200b.0.0.1 127.0.0.1\u3002
    # hosts: an IPv6 address
    [::1] [::] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::ffff:127.0.0.1] [::ffff:7f00:1]
    [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [fe80::1] [fc00::1] [fd00:ec2::254] [FD00:EC2::254]
    [2606:4700::1111] [::1]:8443 [::FFFF:A9FE:A9FE]`,
  "user-info": `
    # hosts: user info
    user@hooks.example.com user:password@hooks.example.com :password@hooks.example.com @hooks.example.com
    :@hooks.example.com hooks.example.com@127.0.0.1 hooks.example.com:443@10.0.0.1 user%40a@hooks.example.com
    a@b@hooks.example.com user@localhost
    # URLs: user info
    http://user@localhost:8787/`,
  "not-port-443": `
    # hosts: another port
    hooks.example.com:80 hooks.example.com:8443 hooks.example.com:22 hooks.example.com:0 hooks.example.com:65535
    hooks.example.com:4430 hooks.example.com:00444 hooks.example.com.:8443`,
  fragment: `
    # URLs: a fragment
    https://hooks.example.com/# https://hooks.example.com/#a https://hooks.example.com#a https://a.example/?b#c`,
  "malformed-host": `
    # hosts: a host that is no host name
    localhost.. 127.0.0.1.. hooks..example.com .example.com hooks.example.com.. -a.example.com a-.example.com
    xn--localhost- printer.xn--local- *.example.com a,b.example.com localhost,.example.com a$.example.com
    a;b.example.com (a).example.com a=b.example.com ${"a".repeat(64)}.example.com ${"a.".repeat(126)}example ${"a.".repeat(123)}examples`,
  malformed: `
    # hosts: what the parser refuses
    256.1.1.1 1.2.3.4.5 4294967296 0x100000000 08.0.0.1 hooks.example.0x7f hooks.example.1 [::1 ::1 [fe80::1%25eth0]
    [v1.a] [::1]. %5b::1%5d hooks.example.com:65536 hooks.example.com:44３ hooks.example.com:-1 hooks%00.example.com
    hooks%2f.example.com a%40b.example.com a＠b.example.com a／b.example.com a%.example.com printer.lo\u200ccal
    a<b.example.com xn--\u00fc.example.com
    # URLs: what the parser refuses
    https https: https:// https:/// hooks.example.com/hook //hooks.example.com/ not␠a␠url ␠ ␤
    # URLs: what parsers disagree about
    https:hooks.example.com https:/hooks.example.com/ https:///hooks.example.com/ https:\\\\hooks.example.com\\
    https://hooks.example.com\\@127.0.0.1/ https://127.0.0.1\\.example.com/ ␠https://hooks.example.com/
    https://hooks.example.com/␤ https://hooks.exam\tple.com/ https://hooks.example.com/a␠b
    https://hooks.example.com/\u0000 https://hooks.example.com/\u0085 https://hooks.example.com/\u3000
    https://hooks.example.com/\r␤Host:a java␤script:alert(1) javascript:alert(1) mailto:hooks@example.com
    data:text/plain,hooks.example.com`,
  "too-long": `
    # URLs: too many characters, as written or as sent
    ${longUrl(2048 + 1)} https://hooks.example.com/${"é".repeat(400)} ${"a".repeat(10_000)}`,
};

function longUrl(characters: number): string {
  return "https://hooks.example.com/".padEnd(characters, "a");
}

const words = (list: string): string[] => list.trim().split(/[ \n]+/);

function refusedUrls([reason, table]: [string, string]) {
  return table
    .split(/^ *# /m)
    .slice(1)
    .flatMap((section) => {
      const [heading = "", ...lines] = section.split("\n");
      return words(lines.join("\n")).map((word) => {
        const url = word.replaceAll("␠", " ").replaceAll("␤", "\n");
        return { reason, heading, url: heading.startsWith("hosts") ? `https://${url}/hook` : url };
      });
    });
}

const REFUSED = Object.entries(REFUSED_BY_REASON).flatMap(refusedUrls);

const ALLOWED = [
  ...words(`https://hooks.example.com https://hooks.example.com/ https://hooks.example.com/a/b?c=d&e=%20 https://EXAMPLE.COM/
    https://hooks.example.com:443/ https://hooks.example.com:0443/ https://hooks.example.com:/ https://hooks.example.com./
    HTTPS://hooks.example.com/ https://xn--bcher-kva.example/ https://bücher.example/ https://例え.テスト/ https://a_b.example.com/
    https://a-1.example.com/ https://1.example.com/ https://127.0.0.1.example.com/ https://localhost.example.com/
    https://lan.example/ https://home.example/ https://corp.example/ https://local.example/ https://internal.example/ https://notlocal.example/ https://mylocal.nolocal/ https://x.internals/
    https://hooks.example.com/@user https://hooks.example.com/?to=a@b https://hooks.example.com/?next=http://localhost
    https://hooks.test/ https://hooks.invalid/ https://hooks.example.com/%23 https://hooks.example.com//a https://${"a".repeat(63)}.example.com/ https://${"a.".repeat(123)}example/`),
  longUrl(2048),
];

const LOCAL = words(`http://localhost:8787/ http://localhost:8787/a/b?c=d http://localhost:80/ http://localhost/hook
  http://LOCALHOST:3000/ http://127.0.0.1:8787/ http://127.0.0.1:3000/hook http://127.0.0.1`);

describe("a webhook is sent only to a public https receiver (contract section 8)", () => {
  test.each(REFUSED)("$heading: $url", ({ url, reason }) => {
    for (const local of [false, true]) expect(checkOutboundUrl(url, { local })).toEqual({ ok: false, reason });
  });

  it("the check of webhook URLs is tested with at least 150 different URLs", () => {
    expect(new Set(REFUSED.map(({ url }) => url)).size).toBe(REFUSED.length);
    expect(REFUSED.length).toBeGreaterThanOrEqual(150);
  });

  it("the check of webhook URLs recognizes every IPv4 address in every base", () => {
    fc.assert(
      fc.property(fc.nat(0xff_ff_ff_ff), fc.constantFrom("", ".", "/", "?a", ":8443"), (address, rest) => {
        for (const host of [address.toString(), `0x${address.toString(16)}`, `0${address.toString(8)}`]) {
          const check = checkOutboundUrl(`https://${host}${rest}`, { local: false });
          expect(check, host).toEqual({ ok: false, reason: "ip-literal" });
        }
      }),
    );
  });
});

/** A URL that was accepted when it was set is accepted when it is called. */
function expectNormalisedIsAccepted(text: string): void {
  const check = checkOutboundUrl(text, { local: true });
  expect(check.ok && checkOutboundUrl(check.url.href, { local: true })).toEqual(check);
  expect(check.ok).toBe(true);
}

describe("a public https receiver is accepted (contract section 8)", () => {
  test.each(ALLOWED)("allows %s", (text) => {
    for (const local of [false, true]) {
      const check = checkOutboundUrl(text, { local });
      expect(check.ok && check.url.href).toBe(new URL(text).href);
    }
    expectNormalisedIsAccepted(text);
  });
});

describe("a receiver on this machine is accepted only while the service runs locally (contract section 8)", () => {
  test.each(LOCAL)("%s", (text) => {
    expectNormalisedIsAccepted(text);
    expect(checkOutboundUrl(text, { local: false })).toEqual({ ok: false, reason: "local-only" });
  });
});

it("a webhook URL check never throws, and accepts only https on port 443 of a dotted name (contract section 8)", () => {
  fc.assert(
    fc.property(fc.oneof(fc.webUrl({ withFragments: true }), fc.string({ unit: "binary" })), (text) => {
      for (const candidate of [text, `https://${text}`]) {
        const check = checkOutboundUrl(candidate, { local: false });
        if (check.ok) expect(check.url.href).toMatch(/^https:\/\/[a-z0-9_-]+(\.[a-z0-9_-]+)+\.?\/[^#]*$/);
      }
    }),
    { numRuns: byEffort(300, 20_000) },
  );
});

describe("a refused URL gets a reason (contract section 8)", () => {
  const reasons = [...REFUSED.map(({ url }) => url), ...LOCAL].flatMap((url) => {
    const check = checkOutboundUrl(url, { local: false });
    return check.ok ? [] : [check.reason];
  });

  it("a refused URL gets its reason on one line", () => {
    const lines = new Set(reasons.map(describeUrlRefusal));
    expect(lines.size).toBe(Object.keys(REFUSED_BY_REASON).length + ["local-only"].length);
    for (const line of lines) expect(line).toMatch(/^[A-Z][^\n]{20,120}\.$/);
  });
});
