import { describe, expect, it } from "vitest";
import { normalizeUrl } from "../../src/worker/dpop/url.ts";
import { makeProof, outcomeOf } from "./support.ts";

const CALLED = "https://badges.example.com/v1/badge";

describe("htu is compared after normalization (RFC 9449 section 4.3)", () => {
  it.each([
    ["with the host in mixed case (6.2.2.1)", "https://Badges.Example.COM/v1/badge"],
    ["with percent-encoded unreserved characters (6.2.2.2)", "https://badges.example.com/%76%31/b%61dge"],
    ["with dot segments (6.2.2.3)", "https://badges.example.com/x/../v1/./badge"],
    ["with the default port (6.2.3)", "https://badges.example.com:443/v1/badge"],
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
    ["a path in upper case", "https://badges.example.com/v1/BADGE"],
    ["a slash at the end", `${CALLED}/`],
    ["a percent-encoded slash", "https://badges.example.com/v1%2Fbadge"],
    ["user info", "https://me@badges.example.com/v1/badge"],
    ["a path alone", "/v1/badge"],
    ["one slash", "https:/badges.example.com/v1/badge"],
    ["backslashes", "https:\\\\badges.example.com\\v1\\badge"],
    ["white space around it", ` ${CALLED} `],
    ["a tab within", "https://badges.example.com/v1/ba\tdge"],
    ["a character outside ASCII", "https://badges.example.com/v1/b\u0430dge"],
    ["broken percent-encoding", "https://badges.example.com/v1/badge%"],
  ])("htu is normalized and does not match %s", async (_name, htu) => {
    expect(await outcomeOf(await makeProof({ claims: { htu } }), { urls: [CALLED] })).toBe("INVALID_PROOF wrong-url");
  });

  it("htu keeps reserved characters encoded, with hexadecimal digits in upper case", () => {
    expect(normalizeUrl("http://h/%7e%2f%C3%a4%41")).toBe("http://h/~%2F%C3%A4A");
    expect(normalizeUrl("http://H:80")).toBe("http://h/");
    expect(normalizeUrl("http://[::1]:8787/v1/badge")).toBe("http://[::1]:8787/v1/badge");
  });
});
