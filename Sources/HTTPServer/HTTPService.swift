import HTTPTypes
package import Hummingbird
import HummingbirdCore
package import Listening
package import Logging
package import NIOCore
import NIOHTTP1
import NIOPosix
import ServerConfiguration
import ServiceLifecycle
package import Support
import Synchronization

/// An HTTP port as a service: hands requests to the responder and to the handoffs that it was given. Binds once, reports its port, runs
/// until the group shuts down.
///
/// Hummingbird reads the requests and has their responses written. Its own server only opens new sockets and cannot take over those that are open.
package final class HTTPService: Service, Sendable {
    private let responder: RouterResponder<APIContext>
    private let placement: Placement
    private let gate: AcceptGate
    private let address: HostPort
    private let certificate: CertificateStore?
    /// What all HTTP ports of the server share.
    package let shared: HTTPServerChannel.Shared
    private let sockets: ListeningSockets
    private let group: any EventLoopGroup
    private let log: Logger
    private let listener = Mutex<(any Channel)?>(nil)

    /// Serves HTTPS if there is a certificate.
    package init(
        responder: RouterResponder<APIContext>, address: HostPort, certificate: CertificateStore? = nil, shared: HTTPServerChannel.Shared,
        placement: Placement, gate: AcceptGate, sockets: ListeningSockets, group: any EventLoopGroup, log: Logger
    ) {
        self.responder = responder
        self.placement = placement
        self.gate = gate
        self.address = address
        self.certificate = certificate
        self.shared = shared
        self.sockets = sockets
        self.group = group
        // Hummingbird's log lines about single requests help only developers.
        var quiet = log
        if log.logLevel > .debug { quiet.logLevel = .warning }
        self.log = quiet
    }

    /// Opens the port and serves it. Returns the address in use, with the port that the system chose for port 0. Throws ``ListenError``.
    package func bind() async throws -> HostPort {
        let answer = Self.answering(self.responder, log: self.log)
        let listener: any Channel
        if let certificate {
            listener = try await self.listen("https", HTTPSServerChannel(responder: answer, shared: self.shared, certificate: certificate))
        } else {
            listener = try await self.listen("http", HTTPServerChannel(responder: answer, shared: self.shared))
        }
        self.listener.withLock { $0 = listener }
        return HostPort(host: self.address.host, port: listener.localAddress?.port ?? self.address.port)
    }

    /// Serves a connection that did not come from the port. On its loop, before it begins.
    package func serve(_ connection: any Channel) -> EventLoopFuture<Void> {
        let (answer, shared, certificate, log) = (
            Self.answering(self.responder, log: self.log), self.shared, self.certificate, self.log
        )
        return connection.setOption(.allowRemoteHalfClosure, value: true).flatMap {
            guard let certificate else {
                return Self.begin(HTTPServerChannel(responder: answer, shared: shared), on: connection, log: log)
            }
            return Self.begin(
                HTTPSServerChannel(responder: answer, shared: shared, certificate: certificate), on: connection, log: log)
        }
    }

    private static func begin(_ protocols: some ServerChildChannel, on connection: any Channel, log: Logger) -> EventLoopFuture<Void> {
        protocols.setup(channel: connection, logger: log).map { conversation in
            _ = Task { await protocols.handle(value: conversation, logger: log) }
        }
    }

    private func listen(_ scheme: String, _ protocols: some ServerChildChannel) async throws -> any Channel {
        let log = self.log
        let bootstrap = self.placement.bootstrap(self.gate) { channel in
            channel.setOption(.allowRemoteHalfClosure, value: true).flatMap { Self.begin(protocols, on: channel, log: log) }
        }
        return try await self.sockets.listen(scheme, on: self.address, bootstrap)
    }

    /// Answers as Hummingbird's Application does.
    private static func answering(_ responder: RouterResponder<APIContext>, log: Logger) -> HTTPChannelHandler.Responder {
        return { request, writer, channel in
            var log = log
            log[metadataKey: "hb.request.id"] = .stringConvertible(RequestID())
            var response: Response
            do {
                response = try await responder.respond(to: request, context: APIContext(source: .init(channel: channel, logger: log)))
            } catch let error as HTTPParserError {
                throw error
            } catch {
                log.debug("A request failed", metadata: ["error": "\(error)"])
                response = Response(status: .internalServerError)
            }
            // One place for all routes.
            if request.method == .head { response = response.withoutContent }
            response.headers[.date] = ResponseDates.shared.now
            response.headers[.server] = "earshot"
            do {
                try await writer.write(response: response.head, body: response.body)
            } catch is HTTPParserError {
                // Hummingbird would write another answer.
                throw ChannelError.inputClosed
            }
        }
    }

    /// Connections close when their requests are answered, or after a second: the end of the whole server may take a few.
    package func run() async throws {
        try? await gracefulShutdown()
        if let listener = self.listener.withLock({ $0 }) { await self.sockets.close(listener) }
        await self.shared.end(within: .seconds(1), on: self.group.next())
    }
}
