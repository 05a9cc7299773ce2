/// The schema's steps. One that was released never changes: a later change of a table is a further step, written in both databases' words.
enum StoreSchema {
    struct Step: Sendable {
        let sqlite: String
        let postgres: String
        /// Running servers of the version before work on with it.
        var isUnnoticed = false
    }

    /// The first step makes version 1 of nothing, each further one the next version.
    static let steps = [Step(sqlite: FirstSchemaOfSQLite.text, postgres: FirstSchemaOfPostgres.text)]

    /// The version that this program makes and reads.
    static var version: Int { self.steps.count }

    /// What the tables are that a database has.
    enum State: Equatable {
        /// There are none.
        case empty
        case version(Int)
        /// A newer earshot has made or changed them.
        case newer
        /// They are of a build from before the first release, which had other steps.
        case unreleased
        /// They belong to another program.
        case foreign

        /// `applied`: the names of the steps that the database has noted; `hasTables`: whether it has any besides those notes.
        init(applied: Set<String>, hasTables: Bool, known: Int = StoreSchema.version) {
            if applied.contains("1 rooms") {
                self = .unreleased
            } else if applied.contains("1") {
                let versions = applied.compactMap { Int($0) }
                let isKnown = versions.count == applied.count && versions.allSatisfy { $0 <= known }
                self = isKnown ? .version(versions.max() ?? 0) : .newer
            } else {
                // A process killed while it made the store may have left only the table of notes.
                self = hasTables ? .foreign : .empty
            }
        }

        /// 0 unless it is one that this program knows.
        var number: Int { if case .version(let number) = self { number } else { 0 } }
    }

    /// Why a database with these tables cannot be used; nil if it can.
    static func objection(to state: State, in location: String, isDatabase: Bool) -> StoreError? {
        func objection(_ problem: String, _ advice: String) -> StoreError { StoreError(path: location, problem: problem, advice: advice) }
        switch state {
        case .empty, .version: return nil
        case .newer:
            return objection("was written by a newer version of earshot", "run that version, or restore a copy made before the upgrade")
        case .unreleased:
            return objection(
                "was made by a build from before the first release, whose tables are not converted",
                isDatabase
                    ? "name an empty database (database.url), or drop its tables: the rooms in them are lost"
                    : "move the file away, or name another data directory (data.directory): the rooms in it are lost")
        case .foreign:
            return isDatabase
                ? objection("holds another program's tables", "name a database of its own (database.url); it was not changed")
                : objection(
                    "is another program's database: none of its tables is earshot's",
                    "name another data directory (data.directory), or move the file away; it was not changed")
        }
    }
}
