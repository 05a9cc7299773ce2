import Foundation
import PostgresTestSupport
import RoomRegistry
package import ServerConfiguration
import Store
import Support

/// Settings of the servers that tests start.
package enum TestConfiguration {
    /// A server on this data directory, with ports that the system chooses, on the store that the tests run on.
    package static func make(in directory: String) throws -> ServerConfig {
        var config = ServerConfig()
        config.data.directory = directory
        config.rtmp.listen = HostPort(host: "127.0.0.1", port: 0)
        config.http.listen = HostPort(host: "127.0.0.1", port: 0)
        config.https.listen = HostPort(host: "127.0.0.1", port: 0)
        if TestPostgres.isOn {
            // Beside the folder's name is the database's.
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            config.database.url = try TestPostgres.location(of: directory)?.url
            config.database.readers = 2
        }
        return config
    }
}
