import APITestSupport
import Foundation
import RTMPTestSupport
import ServerTestSupport
import TestSupport
import Testing

/// Names of sessions, with a real player, and digits of numbers through the command line.
@Suite struct APINameTests {
    @Test func aSessionIsLookedUp() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.refused(404, "GET", "sessions/1")
            let player = try await server.player(of: "cam1")
            try await eventually("the session") { try await api.ok("GET", "sessions?stream=live/cam1")["total"].int == 1 }
            let listed = try await api.ok("GET", "sessions?stream=live/cam1")["list"][0]
            let id = try listed["sessionId"].int.orThrow()
            let session = try await api.ok("GET", "sessions/\(id)")
            #expect(session["sessionId"].int == id && session["playing"][0]["stream"].string == "live/cam1")
            #expect(session["address"].string == listed["address"].string)
            try await api.ok("DELETE", "sessions/\(id)")
            try await eventually("its end") { try await api("GET", "sessions/\(id)").status == 404 }
            let other = try await api.refused(404, "GET", "sessions/9223372036854775807")
            #expect(other["type"].string == "not_found" && other["field"].string == "sessionId")
            await player.close()
        }
    }

    @Test func numbersOfAnAppKeepTheirDigits() async throws {
        // Too large for a `Double`, too small for one, and longer than any.
        let extremes = #""huge":1e400,"tiny":-1E-400,"long":\#(String(repeating: "7", count: 400))"#
        let numbers = #""id":12345678901234567890,"price":1.10,"e":1E3,"zero":-0.0"#
        let custom = #"{\#(numbers),\#(extremes),"list":[0.1000000000000000055511151231257827,7]}"#
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let made = try await api("POST", "rooms", #"{"roomId":"r1","custom":\#(custom)}"#, headers: ["Idempotency-Key": "k"])
            #expect(made.status == 201 && made.text.contains("\"custom\":\(custom)"), "\(made.text)")
            #expect(try await api("GET", "rooms/r1").text.contains("\"custom\":\(custom)"))
            #expect(try await api("GET", "rooms").text.contains("\"custom\":\(custom)"))
            #expect(
                try await api("POST", "rooms", #"{"roomId":"r1","custom":\#(custom)}"#, headers: ["Idempotency-Key": "k"]).text == made.text
            )
            try await Fixture.withDirectory { directory in
                let cli = try await server.cli(in: directory)
                _ = try await cli.text("rooms", "create", "--room-id", "r2", "--custom", custom)
                let shown = try await cli.text("rooms", "show", "r2", "--json")
                for digits in ["12345678901234567890", ": 1.10", "1E3", "-0.0", "0.1000000000000000055511151231257827"] {
                    #expect(shown.contains(digits), "\(digits) in \(shown)")
                }
            }
            #expect(try await api("GET", "rooms/r2").text.contains("0.1000000000000000055511151231257827"))
        }
    }
}
