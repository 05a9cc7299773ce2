import CommandSupport
import LibC
import NIOCore
import NIOPosix
import NIOSSL
import Support
import Synchronization

/// Checks the certificate that a TLS port presents: would a client that knows the name trust it?
struct TLSCheck {
    let name: String
    let address: HostPort
    /// The host name that clients use; nil when none is known.
    let host: String?

    private static let limit = TimeAmount.seconds(5)

    func run() async -> [DoctorResult] {
        let seen: [NIOSSLCertificate]
        do {
            seen = try await self.presented()
        } catch {
            return [.fail(self.name, "\(self.address): \(ConnectFailure.words(error))", "look for TLS errors in the server's log")]
        }
        guard let leaf = seen.first else { return [.fail(self.name, "\(self.address) presents no certificate", "set rtmps.certificate")] }
        let facts = CertificateChecks.Facts(leaf)
        var results = CertificateChecks.judge(facts, hosts: self.host.map { [$0] } ?? [], from: "\(self.address)", now: Int64(time(nil)))
            .filter { $0.status == .fail }
        if results.isEmpty {
            results.append(
                .pass(self.name, "\(self.address) speaks TLS, with \(seen.count == 1 ? "1 certificate" : "\(seen.count) certificates")"))
        }
        if let host = self.host ?? facts.names.first(where: { !$0.contains("*") && IPText.v4($0) == nil && IPText.v6($0) == nil }) {
            results.append(await self.trust(host, seen.count))
        }
        return results
    }

    private func trust(_ host: String, _ count: Int) async -> DoctorResult {
        let name = "\(self.name): chain"
        do {
            let context = try NIOSSLContext(configuration: .makeClientConfiguration())
            try await self.handshake { try NIOSSLClientHandler(context: context, serverHostname: host) }
            return .pass(name, "trusted by this machine, for \(host)")
        } catch {
            let why = "\(error)".contains("CERTIFICATE_VERIFY_FAILED") ? "this machine does not trust it" : ConnectFailure.words(error)
            let advice =
                count == 1
                ? "the file of rtmps.certificate should hold the whole chain (fullchain.pem); a self-signed one is trusted only where it was installed"
                : "is the issuer a public one? A private one must be installed on every client"
            return .warn(name, "\(why) (\(count == 1 ? "it comes without a chain" : "a chain of \(count)"))", advice)
        }
    }

    private func presented() async throws -> [NIOSSLCertificate] {
        let box = Box()
        let context = try NIOSSLContext(configuration: .makeClientConfiguration())
        let isName = self.host.map { IPText.v4($0) == nil && IPText.v6($0) == nil } ?? false
        let server = isName ? self.host : nil
        try await self.handshake {
            try NIOSSLClientHandler(context: context, serverHostname: server) { chain, promise in
                box.put(chain)
                promise.succeed(.certificateVerified)
            }
        }
        return box.value
    }

    /// Certificates that the handshake's callback saw.
    private final class Box: Sendable {
        private let state = Mutex<[NIOSSLCertificate]>([])
        func put(_ chain: [NIOSSLCertificate]) { self.state.withLock { $0 = chain } }
        var value: [NIOSSLCertificate] { self.state.withLock { $0 } }
    }

    /// Connects, and closes when the handshake is over. Throws the handshake's error.
    private func handshake(_ handler: @escaping @Sendable () throws -> NIOSSLClientHandler) async throws {
        let failure = Failure()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(Self.limit)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers([try handler(), Witness(failure)])
                }
            }
            .connect(host: self.address.host, port: self.address.port).get()
        let timer = channel.eventLoop.scheduleTask(in: Self.limit) { channel.close(promise: nil) }
        defer {
            timer.cancel()
            channel.close(promise: nil)
        }
        // The write completes once TLS is up. If TLS fails, the write fails too, and the handler has the cause.
        do { try await channel.writeAndFlush(ByteBuffer(bytes: [0x03])).get() } catch { throw failure.first ?? error }
    }

    /// The first error of a connection.
    private final class Failure: Sendable {
        private let error = Mutex<(any Error)?>(nil)
        func put(_ new: any Error) { self.error.withLock { if $0 == nil { $0 = new } } }
        var first: (any Error)? { self.error.withLock { $0 } }
    }

    private final class Witness: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let failure: Failure
        init(_ failure: Failure) { self.failure = failure }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            self.failure.put(error)
            context.close(promise: nil)
        }
    }
}
