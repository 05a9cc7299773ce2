internal import AsyncHTTPClient
package import NIOCore
internal import NIOHTTP1

/// The answer of another node; its body is read as it comes.
package struct NodeReply: Sendable {
    package let status: Int
    package let headers: [(name: String, value: String)]
    package let body: NodeBody
}

/// The bytes of another node's answer.
package struct NodeBody: AsyncSequence, Sendable {
    package typealias Element = ByteBuffer

    fileprivate let body: HTTPClientResponse.Body
    fileprivate let lease: NodeLoan

    package struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var parts: HTTPClientResponse.Body.AsyncIterator
        fileprivate let lease: NodeLoan

        package mutating func next() async throws -> ByteBuffer? { try await self.parts.next() }
    }

    package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(parts: self.body.makeAsyncIterator(), lease: self.lease) }
}

/// Gives a client back when nobody reads with it any more.
private final class NodeLoan: Sendable {
    private let lease: OutboundPool.Lease
    private let pool: OutboundPool

    init(_ lease: OutboundPool.Lease, of pool: OutboundPool) {
        self.lease = lease
        self.pool = pool
    }

    deinit { self.pool.giveBack(self.lease) }
}

extension OutboundClient {
    /// Time limit for a whole answer of another node, a file of hours included.
    private static let longestAnswer = TimeAmount.hours(6)

    /// Sends a client's request on to another node of the cluster. `timeout` covers lookup, connection and the answer's head.
    ///
    /// Nodes may have private addresses: they come from the registry, which only the cluster's nodes write.
    package func forward(
        _ method: String, to url: String, headers: [(name: String, value: String)], body: ByteBuffer, timeout: Duration
    ) async throws(OutboundError) -> NodeReply {
        let target = try OutboundURL(parsing: url)
        return try await Self.within(timeout, target) { () throws(OutboundError) in
            try await self.reach(target, at: try await self.addresses(of: target)) { (address) throws(OutboundError) in
                try await self.answer(method, target, at: address, headers, body)
            }
        }.get()
    }

    private func answer(
        _ method: String, _ target: OutboundURL, at address: [UInt8], _ headers: [(name: String, value: String)], _ body: ByteBuffer
    ) async throws(OutboundError) -> NodeReply {
        var request = HTTPClientRequest(url: target.text)
        request.method = HTTPMethod(rawValue: method)
        for header in headers { request.headers.add(name: header.name, value: header.value) }
        if body.readableBytes > 0 { request.body = .bytes(body) }
        guard let lease = self.pool.lease(target, address: address, pool: OutboundPool.nodes) else { throw .cancelled }
        let loan = NodeLoan(lease, of: self.pool)
        do {
            let response = try await lease.client.execute(request, deadline: .now() + Self.longestAnswer)
            return NodeReply(
                status: Int(response.status.code), headers: response.headers.map { (name: $0.name, value: $0.value) },
                body: NodeBody(body: response.body, lease: loan))
        } catch {
            throw Self.failure(error, target)
        }
    }
}
