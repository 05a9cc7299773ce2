package import NIOCore
import NIOSSL

extension Channel {
    /// Closes the socket at once, bypassing TLS, which would wait for the peer. On its loop.
    package func cut() {
        guard let tls = try? self.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self) else {
            return self.close(promise: nil)
        }
        tls.close(promise: nil)
    }
}
