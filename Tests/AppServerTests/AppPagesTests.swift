import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// The apps' pages and scripts as browsers get them.
@Suite struct AppPagesTests {
    private static let demo = [
        "/demo/class", "/demo/machine", "/demo/class.js", "/demo/class.css", "/demo/machine.js", "/demo/demo.js", "/demo/demo.css",
    ]
    private static let others = ["/mesh", "/mesh/mesh.js", "/board/x", "/board/board.js", "/sdk/rong.js", "/sdk/nim.js"]

    /// What a browser has is not sent again, until the server has another version.
    @Test func onlyOnce() async throws {
        try await PortlessServer.run({ $0.apps.demo = true }) { server in
            for path in Self.demo + Self.others {
                let first = try await HTTPAnswer.call("GET", "\(server.http)\(path)")
                #expect(first.status == 200 && first.headers["cache-control"] == "no-cache", "\(path): \(first.headers)")
                // Compressed text has a tag of its own.
                let tag = try first.headers["etag"].orThrow().replacing("-gzip\"", with: "\"")
                #expect(tag.wholeMatch(of: /"[0-9a-f]{24}"/) != nil, "\(path): \(tag)")
                let policy = try first.headers["content-security-policy"].orThrow()
                for known in [tag, "W/\"x\", \(tag)", "\(tag.dropLast())-gzip\""] {
                    let again = try await HTTPAnswer.call("GET", "\(server.http)\(path)", headers: ["If-None-Match": known])
                    #expect(again.status == 304 && again.body.isEmpty && again.headers["etag"] == tag, "\(path): \(again.status)")
                    #expect(again.headers["content-security-policy"] == policy)
                }
                let other = try await HTTPAnswer.call("GET", "\(server.http)\(path)", headers: ["If-None-Match": "\"0\""])
                #expect(other.status == 200 && other.body == first.body)
                let head = try await HTTPAnswer.call("HEAD", "\(server.http)\(path)")
                #expect(
                    head.status == 200 && head.body.isEmpty && head.headers["etag"] == first.headers["etag"]
                        && head.headers["content-security-policy"] == policy)
            }
        }
    }

    /// The pages have words for every refusal that they may get, in both languages.
    @Test(arguments: [("class", ClassTables.codes.subtracting([4])), ("machine", MachineTables.codes.subtracting([901, 902]))])
    func wordsOfRefusals(_ page: String, _ codes: Set<Int>) async throws {
        try await PortlessServer.run({ $0.apps.demo = true }) { server in
            let script = try await HTTPAnswer.call("GET", "\(server.http)/demo/\(page).js").text
            let words = script.matches(of: /\bcode([0-9]+): \['([^']+)',\s+'([^']+)'\]/)
            #expect(codes.isSubset(of: Set(words.compactMap { Int($0.output.1) })), "\(page)")
            for match in words {
                #expect(match.output.3.contains(/\p{Han}/) && !match.output.2.contains(/\p{Han}/), "\(match.output.0)")
            }
            let board = try await HTTPAnswer.call("GET", "\(server.http)/board/x").text
            #expect(board.contains(/<noscript>[^<]*\p{Han}[^<]*<\/noscript>/))
        }
    }

    @Test func switchedOff() async throws {
        try await PortlessServer.run { server in
            for path in Self.demo {
                for method in ["GET", "HEAD"] {
                    let status = try await HTTPAnswer.call(method, "\(server.http)\(path)").status
                    #expect(status == 404, "\(method) \(path)")
                }
            }
            // Apps' own clients need these.
            for path in ["/board/x", "/sdk/rong.js", "/sdk/nim.js"] {
                let status = try await HTTPAnswer.call("GET", "\(server.http)\(path)").status
                #expect(status == 200, "\(path)")
            }
        }
    }
}
