package import Foundation
package import Support

/// A server whose clients connect to addresses: those of its ports, or of the ``MemoryNetwork``.
package protocol AddressedServer: TestedServer where Door == Int {
    var addresses: BoundAddresses { get }
}

extension AddressedServer {
    package var port: Int { self.addresses.rtmp.port }
    /// "rtmp://127.0.0.1:PORT"
    package var rtmp: String { "rtmp://127.0.0.1:\(self.addresses.rtmp.port)" }
    /// "http://127.0.0.1:PORT"
    package var http: String { "http://127.0.0.1:\(self.addresses.http.port)" }

    /// The HTTPS port.
    package var secure: Int { self.addresses.https?.port ?? 0 }
    package var https: String { "https://127.0.0.1:\(self.secure)" }

    package func exchange(_ method: String, _ path: String, _ body: Data?, _ headers: [String: String]) async throws -> HTTPAnswer {
        try await HTTPAnswer.call(method, self.http + path, body: body, headers: headers)
    }
}
