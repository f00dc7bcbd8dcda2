import { describe, expect, it } from "vitest";
import { parsePublicUrl } from "../../src/shared/service-url.ts";
import { callUrls, normalizeUrl } from "../../src/worker/dpop/url.ts";
import { makeProof, outcomeOf } from "./support.ts";

const CALLED = "https://badges.example.com/v1/badge";

describe("htu is compared after normalization (RFC 9449 section 4.3)", () => {
  it.each([
    ["as it is", CALLED],
    ["with the scheme in upper case (RFC 3986 section 6.2.2.1)", "HTTPS://badges.example.com/v1/badge"],
    ["with the host in mixed case (6.2.2.1)", "https://Badges.Example.COM/v1/badge"],
    ["with percent-encoded unreserved characters (6.2.2.2)", "https://badges.example.com/%76%31/b%61dge"],
    ["with dot segments (6.2.2.3)", "https://badges.example.com/x/../v1/./badge"],
    ["with percent-encoded dot segments (6.2.2.2, 6.2.2.3)", "https://badges.example.com/x/%2E%2e/v1/%2e/badge"],
    ["with the default port (6.2.3)", "https://badges.example.com:443/v1/badge"],
    ["with an empty port (6.2.3)", "https://badges.example.com:/v1/badge"],
    ["with a query", `${CALLED}?a=1`],
    ["with a fragment", `${CALLED}#a`],
  ])("htu is normalized and matches %s", async (_name, htu) => {
    expect(await outcomeOf(await makeProof({ claims: { htu } }), { urls: [CALLED] })).toBe("accepted");
  });

  it.each([
    ["another scheme", "http://badges.example.com/v1/badge"],
    ["another host", "https://badges.example.org/v1/badge"],
    ["a host with a final dot", "https://badges.example.com./v1/badge"],
    ["another port", "https://badges.example.com:8443/v1/badge"],
    ["another path", "https://badges.example.com/v1/badges"],
    ["a path in upper case", "https://badges.example.com/v1/BADGE"],
    ["a slash at the end", `${CALLED}/`],
    ["an empty segment", "https://badges.example.com//v1/badge"],
    ["a percent-encoded slash", "https://badges.example.com/v1%2Fbadge"],
    ["a path parameter", `${CALLED};a=1`],
    ["no path", "https://badges.example.com"],
    ["user info", "https://me@badges.example.com/v1/badge"],
    ["a host before an @", "https://badges.example.com@evil.example/v1/badge"],
    ["no scheme", "//badges.example.com/v1/badge"],
    ["a path alone", "/v1/badge"],
    ["another kind of URL", "file:///v1/badge"],
    ["no host", "https:///v1/badge"],
    ["one slash", "https:/badges.example.com/v1/badge"],
    ["four slashes", "https:////badges.example.com/v1/badge"],
    ["backslashes", "https:\\\\badges.example.com\\v1\\badge"],
    ["white space around it", ` ${CALLED} `],
    ["a tab within", "https://badges.example.com/v1/ba\tdge"],
    ["a line feed at the end", `${CALLED}\n`],
    ["a character outside ASCII", "https://badges.example.com/v1/b\u0430dge"],
    ["broken percent-encoding", "https://badges.example.com/v1/badge%"],
    ["a NUL", "https://badges.example.com/v1/badge%00"],
    ["nothing", ""],
  ])("htu is normalized and does not match %s", async (_name, htu) => {
    expect(await outcomeOf(await makeProof({ claims: { htu } }), { urls: [CALLED] })).toBe("INVALID_PROOF wrong-url");
  });

  it("htu keeps reserved characters encoded, with hexadecimal digits in upper case", () => {
    expect(normalizeUrl("http://h/%7e%2f%C3%a4%41")).toBe("http://h/~%2F%C3%A4A");
    expect(normalizeUrl("http://H:80")).toBe("http://h/");
    expect(normalizeUrl("http://[::1]:8787/v1/badge")).toBe("http://[::1]:8787/v1/badge");
  });

  it("no htu matches a called URL that is no URL", async () => {
    expect(await outcomeOf(await makeProof({ claims: { htu: "x" } }), { urls: ["x"] })).toBe("INVALID_PROOF wrong-url");
  });
});

describe("behind a proxy (contract section 15: the called URL, or PUBLIC_URL + path)", () => {
  const inside = "http://10.0.0.7:8787/v1/badge?x=1";

  it.each([
    ["of another host", "https://badges.example.com", CALLED],
    ["with a slash at its end", "https://badges.example.com/", CALLED],
    ["with a path", "https://example.com/badges/", "https://example.com/badges/v1/badge"],
  ])("in a deployment a proof names the public URL %s, and nothing else", async (_name, publicUrl, htu) => {
    const urls = callUrls(inside, parsePublicUrl(publicUrl), false);
    expect(await outcomeOf(await makeProof({ claims: { htu } }), { urls })).toBe("accepted");
    for (const wrong of [inside, `${htu}/sign`]) {
      expect(await outcomeOf(await makeProof({ claims: { htu: wrong } }), { urls })).toBe("INVALID_PROOF wrong-url");
    }
  });

  it("in local development a proof may also name the called URL: localhost, 127.0.0.1, an address of the network", async () => {
    const urls = callUrls(inside, "https://badges.example.com", true);
    for (const htu of [CALLED, inside]) {
      expect(await outcomeOf(await makeProof({ claims: { htu } }), { urls })).toBe("accepted");
    }
  });

  it.each([true, false])("without PUBLIC_URL a proof names only the called URL (local: %j)", async (isLocal) => {
    const urls = callUrls(inside, null, isLocal);
    expect(await outcomeOf(await makeProof({ claims: { htu: inside } }), { urls })).toBe("accepted");
    expect(await outcomeOf(await makeProof(), { urls })).toBe("INVALID_PROOF wrong-url");
  });
});
