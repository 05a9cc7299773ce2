import NIOCore
package import Support

/// A port that cannot be listened on.
package struct ListenError: Error, CustomStringConvertible {
    let scheme: String
    let address: HostPort
    let cause: any Error

    package init(scheme: String, address: HostPort, cause: any Error) {
        self.scheme = scheme
        self.address = address
        self.cause = cause
    }

    package var description: String {
        let why: String
        if let io = self.cause as? IOError {
            switch io.errnoCode {
            case Self.EADDRINUSE: why = "the port is in use; stop the other server or choose another port"
            case Self.EACCES: why = "ports below 1024 need more privileges"
            case Self.EADDRNOTAVAIL: why = "this machine has no such address"
            default: why = io.description
            }
        } else {
            why = "\(self.cause)"
        }
        return "cannot listen for \(self.scheme) on \(self.address): \(why) (setting \(self.scheme).listen)"
    }

    /// errno.h of Linux.
    private static let EACCES: CInt = 13
    private static let EADDRINUSE: CInt = 98
    private static let EADDRNOTAVAIL: CInt = 99
}
