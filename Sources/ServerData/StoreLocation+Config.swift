import Access
package import Logging
package import Store
package import ServerConfiguration
import Support

extension StoreLocation {
    /// Where a server with these settings keeps its rooms.
    package init(_ config: ServerConfig) {
        let key = ClusterKey(config)
        self.init(
            folder: config.data.directory, url: config.database.url, readers: config.database.readers, prepares: config.database.isPrepared,
            node: config.cluster.nodeName, version: ServerVersion.text, cluster: key?.fingerprint,
            otherKey: key?.previousFingerprint)
    }

    /// Logs where a server that starts keeps its rooms, if that is a database or no longer one, and marks its data directory.
    package func announce(in directory: String, _ log: Logger) {
        switch self {
        case .postgres(let database):
            log.info("Rooms are kept in PostgreSQL", metadata: ["database": "\(database)", "node": "\(database.node)"])
        case .folder(let folder):
            if let database = StoreMarker.database(of: folder) {
                log.warning(
                    "Rooms are kept in the data directory again: database.url is not set; those in the database stay there",
                    metadata: ["database": "\(database)"])
            }
        }
        StoreMarker.set(self, in: directory)
    }
}
