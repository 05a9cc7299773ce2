import EarshotServer
import Foundation
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ServerConfiguration

/// `earshot links`, against a real server.
@Suite struct CLILinksTests {
    @Test func addListShowRemove() async throws {
        let url = "rtmp://127.0.0.1:9/live/hush-hush-key?token=hush-hush-token"
        try await Fixture.withDirectory { directory in
            try await TestServer.run({ $0.outbound.allowPrivate = CIDR.loopback }) { server in
                let cli = try await server.cli(in: directory)
                #expect(try await cli("links").errors.contains("no links"))
                let made = try await cli("links", "add", "push", "live/cam1", url)
                #expect(made.status == 0 && made.text == "1\n", "\(made.errors)")
                #expect(made.errors.contains("live/cam1 goes to rtmp://127.0.0.1:9/live/hush***"), "\(made.errors)")
                #expect(try await cli.text("links", "add", "pull", "live/cam2", url, "--on-demand", "--quiet") == "2\n")
                // From standard input, so that no list of processes shows it.
                let line = try cli.line(["links", "add", "push", "live/cam3", "-", "--quiet"])
                let piped = try await ClientProcess.run(["sh", "-c", #"u=$1; shift; echo "$u" | env "$@""#, "sh", url] + line)
                #expect(piped.status == 0 && piped.text == "3\n", "\(piped.errors)")

                let list = try await cli("links", "list")
                #expect(list.lines.count == 4 && list.lines[0].contains("DIRECTION"), "\(list.text)")
                #expect(list.lines[1].contains("push") && list.lines[1].contains("live/cam1") && list.lines[2].contains("pull"))
                #expect(try await cli.json("links", "list")["total"].int == 3)
                #expect(try await cli.text("links", "--quiet") == "1\n2\n3\n")
                let shown = try await cli("links", "show", "2")
                for part in ["live/cam2 comes from rtmp://127.0.0.1:9/live/hush***, only while somebody plays", "state", "idle"] {
                    #expect(shown.text.contains(part), "\(part) in \(shown.text)")
                }
                let all =
                    [made, piped, list, shown].map { $0.text + $0.errors }.joined() + (try await cli.text("links", "list", "--json"))
                #expect(!all.contains("hush-"), "\(all)")

                #expect(try await cli.text("links", "remove", "2") == "link 2 is removed\n")
                #expect(try await cli("links", "remove", "2").status != 0)
                let wrong = try await cli("links", "add", "push", "live/cam1", "http://example.com/hush-hush")
                #expect(wrong.status != 0 && wrong.errors.contains("rtmp") && !wrong.errors.contains("hush"), "\(wrong.errors)")
                for line in [
                    ["add", "push", "live/a", url, "--on-demand"], ["add", "sideways", "live/a", url], ["show", "x"], ["remove"],
                ] {
                    #expect(try await ClientProcess.run(try cli.line(["links"] + line)).status == 64, "\(line)")
                }
            }
        }
    }
}
