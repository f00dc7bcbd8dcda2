import { describe, expect, it, test } from "vitest";
import { checkOutboundUrl, describeUrlRefusal, type UrlRefusal } from "../../src/shared/outbound-url.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";

const words = (list: string): string[] => list.trim().split(/[ \n]+/);
/** `␠` stands for a space inside a URL and `␤` for a line feed. */
const urls = (list: string): string[] => words(list).map((word) => word.replaceAll("␠", " ").replaceAll("␤", "\n"));
/** Hosts to put between `https://` and `/hook`. */
const hosts = (list: string): string[] => urls(list).map((host) => `https://${host}/hook`);
const longUrl = (characters: number): string => "https://hooks.example.com/".padEnd(characters, "a");

const REFUSED: Record<Exclude<UrlRefusal, "local-only">, string[]> = {
  "not-https":
    urls(`http://hooks.example.com/ HTTP://hooks.example.com/ http://hooks.example.com:443/ ftp://hooks.example.com/
      wss://hooks.example.com/ file://hooks.example.com/etc/passwd httpss://hooks.example.com/ http://10.0.0.1/
      http://[::1]:8080/ http://0.0.0.0:8080/ http://127.0.0.2:8080/ http://localhost.:8080/
      http://a.localhost:8080/ http://localhost.example.com:8080/ http://2130706433:8080/ http://127.1:8080/
      http://%6cocalhost:8080/ http://localhost:/`),
  "local-name":
    hosts(`localhost LocalHost localhost. localhost:8443 hooks.localhost a.b.LOCALHOST hooks.localhost. printer.local
      PRINTER.LOCAL printer.local. local internal vault.internal vault.internal. metadata.google.internal
      xn--bcher-kva.local printer.lan nas.home.arpa home.arpa nas.home mail.corp a.intranet a.private
      a.localdomain a.onion intranet 1.0.0.127.in-addr.arpa a.mail router.domain lan corp
      %6c%6f%63%61%6c%68%6f%73%74 hooks%2elocalhost printer%2Elocal%2E printer.local%E3%80%82 ｌｏｃａｌｈｏｓｔ
      ⓛⓞⓒⓐⓛⓗⓞⓢⓣ localhoſt 𝐥𝐨𝐜𝐚𝐥𝐡𝐨𝐬𝐭 ℓocalhost printer｡local printer。local printer.lo\u00adcal
      printer.lo\u200bcal printer.local\ufe0f vault.ⁱnternal vault.ｉｎｔｅｒｎａｌ． vault．internal`),
  "single-label": hosts("hooks kubernetes web_1 xn--bcher-kva bücher com 1e3 hooks:8443"),
  "ip-literal":
    hosts(`127.0.0.1 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 0.0.0.0 255.255.255.255 8.8.8.8 127.0.0.1:8443
      127.0.0.1. 2130706433 0 1 4294967295 017700000001 0177.0.0.01 0X7F000001 0x7f.0.0.1 0x7f.1 0x 0xa9fea9fe
      0xa9.254.0251.254 127.1 127.0.1 192.168.257 2130706433. 0x7f.1. %31%32%37.0.0.1 127%2e0%2e0%2e1
      %32130706433 127.0.0.%EF%BC%91 １２７.０.０.１ 127。0。0。1 127．0．0．1 ①②⑦.⓪.⓪.① ⑯⑨。②⑤④。⑯⑨｡②⑤④ 𝟏𝟐𝟕.𝟎.𝟎.𝟏 ¹²⁷.0.0.1
      0ｘ7f.1 12\u00ad7.0.0.1 127\u200b.0.0.1 [::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::127.0.0.1]
      [64:ff9b::7f00:1] [2002:7f00:1::] [fe80::1] [FD00:EC2::254] [2606:4700::1111] [::1]:8443`),
  "user-info": [
    "http://user@localhost:8787/",
    ...hosts(`user@hooks.example.com user:password@hooks.example.com :password@hooks.example.com @hooks.example.com
      hooks.example.com@127.0.0.1 hooks.example.com:443@10.0.0.1 a@b@hooks.example.com user@localhost`),
  ],
  "not-port-443": hosts(`hooks.example.com:80 hooks.example.com:8443 hooks.example.com:0 hooks.example.com:4430
      hooks.example.com.:8443`),
  fragment: urls("https://hooks.example.com/# https://hooks.example.com#a https://a.example/?b#c"),
  "malformed-host":
    hosts(`localhost.. hooks..example.com .example.com -a.example.com a-.example.com xn--localhost- *.example.com
      a,b.example.com a;b.example.com (a).example.com ${"a".repeat(64)}.example.com ${"a.".repeat(123)}examples`),
  malformed: [
    ...hosts(`256.1.1.1 1.2.3.4.5 4294967296 08.0.0.1 hooks.example.0x7f hooks.example.1 [::1 ::1 [fe80::1%25eth0] [::1].
      %5b::1%5d hooks.example.com:65536 hooks.example.com:44３ hooks%00.example.com hooks%2f.example.com
      a＠b.example.com a／b.example.com a<b.example.com`),
    ...urls(`https https:// https:/// hooks.example.com/hook //hooks.example.com/ not␠a␠url ␠ ␤ https:hooks.example.com
      https:/hooks.example.com/ https:///hooks.example.com/ https:\\\\hooks.example.com\\
      https://hooks.example.com\\@127.0.0.1/ ␠https://hooks.example.com/ https://hooks.example.com/␤
      https://hooks.exam\tple.com/ https://hooks.example.com/a␠b https://hooks.example.com/\u0000
      https://hooks.example.com/\u3000 https://hooks.example.com/\r␤Host:a java␤script:alert(1)
      javascript:alert(1) mailto:hooks@example.com data:text/plain,hooks.example.com`),
  ],
  "too-long": [longUrl(2048 + 1), `https://hooks.example.com/${"é".repeat(400)}`],
};

const ALLOWED = urls(`https://hooks.example.com https://hooks.example.com/a/b?c=d&e=%20 https://hooks.example.com:443/
  https://hooks.example.com:0443/ https://hooks.example.com:/ https://hooks.example.com./ HTTPS://EXAMPLE.COM/
  https://xn--bcher-kva.example/ https://bücher.example/ https://例え.テスト/ https://a_b.example.com/
  https://1.example.com/ https://127.0.0.1.example.com/ https://localhost.example.com/ https://lan.example/
  https://local.example/ https://notlocal.example/ https://mylocal.nolocal/ https://x.internals/
  https://hooks.example.com/@user https://hooks.example.com/?next=http://localhost https://hooks.example.com/%23
  https://hooks.example.com//a https://${"a".repeat(63)}.example.com/ https://${"a.".repeat(123)}example/ ${longUrl(2048)}`);

const LOCAL = urls(`http://localhost:8787/ http://localhost:8787/a/b?c=d http://localhost/hook http://LOCALHOST:3000/
  http://127.0.0.1:8787/ http://127.0.0.1`);

describe("a webhook is sent only to a public https receiver (contract section 8)", () => {
  test.each(Object.entries(REFUSED))("a webhook URL is refused as %s", (reason, refused) => {
    for (const url of refused) {
      for (const local of [false, true]) {
        const check = checkOutboundUrl(url, { local });
        expect(check, url).toEqual({ ok: false, reason });
        if (!check.ok) expect(describeUrlRefusal(check.reason)).toMatch(/^[A-Z][^\n]{20,120}\.$/);
      }
    }
  });

  it("a public https receiver is accepted, and also as it is called", () => {
    for (const text of ALLOWED) {
      for (const local of [false, true]) {
        const check = checkOutboundUrl(text, { local });
        expect(check.ok && check.url.href, text).toBe(new URL(text).href);
        expect(check.ok && checkOutboundUrl(check.url.href, { local })).toEqual(check);
      }
    }
  });

  it("a receiver on this machine is accepted only while the service runs locally", () => {
    for (const text of LOCAL) {
      expect(checkOutboundUrl(text, { local: true }), text).toMatchObject({ ok: true });
      expect(checkOutboundUrl(text, { local: false }), text).toEqual({ ok: false, reason: "local-only" });
    }
    expect(describeUrlRefusal("local-only")).toMatch(/^[A-Z][^\n]{20,120}\.$/);
  });
});

it("a webhook URL check never throws, and accepts only https on port 443 of a dotted name (contract section 8)", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.webUrl({ withFragments: true }), fc.string({ unit: "binary" }), fc.nat(0xff_ff_ff_ff).map(String)),
      (text) => {
        for (const candidate of [text, `https://${text}`]) {
          const check = checkOutboundUrl(candidate, { local: false });
          if (!check.ok) continue;
          expect(check.url.href).toMatch(/^https:\/\/[a-z0-9_-]+(\.[a-z0-9_-]+)+\.?\/[^#]*$/);
          expect(check.url.hostname).not.toMatch(/^[\d.]+$/);
        }
      },
    ),
    { numRuns: byEffort(100, 20_000) },
  );
});
