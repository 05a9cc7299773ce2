import Foundation
import ServerData
import Support
import TestSupport
import Testing

/// What a running server says of its ports in its data directory.
@Suite struct ServedAddressesTests {
    @Test func whatIsWrittenIsRead() async throws {
        try await Fixture.withDirectory { directory in
            #expect(ServedAddresses(in: directory.path) == nil)
            let all = BoundAddresses(
                rtmp: HostPort(host: "0.0.0.0", port: 1_935), rtmps: HostPort(host: "::1", port: 1_936),
                http: HostPort(host: "127.0.0.1", port: 8_080), https: nil)
            for process in [7, 8] {
                let written = ServedAddresses(process: process, all)
                #expect(written.write(in: directory.path) == nil)
                #expect(ServedAddresses(in: directory.path) == written)
            }
            try "{\"process\": 9}".write(
                to: directory.appendingPathComponent(ServedAddresses.fileName), atomically: true, encoding: .utf8)
            #expect(ServedAddresses(in: directory.path) == nil)
            #expect(ServedAddresses(process: 7, all).write(in: "\(directory.path)/none")?.contains("ports.json.new") == true)
        }
    }
}
