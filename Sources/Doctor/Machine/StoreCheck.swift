import CommandSupport
import ServerData
import Store
import Support

/// The SQLite store of rooms and tokens: whether it can be read whole. Blocks.
enum StoreCheck {
    /// No result with another database, or before the first start.
    static func run(_ subject: LocalSubject) -> [DoctorResult] {
        guard subject.hasStore else { return [] }
        do {
            let report = try StoreFolder(directory: subject.directory, secrets: []).check()
            guard let first = report.problems.first else {
                return [.pass(self.name, "\(report.path), \(report.bytes) bytes, nothing is wrong")]
            }
            let others = report.problems.count > 1 ? ", and \(report.problems.count - 1) more" : ""
            return [.fail(self.name, "\(report.path): \(first)\(others)", self.advice)]
        } catch let error as StoreError {
            return [.fail(self.name, "\(error.path): \(error.problem)", error.advice)]
        } catch {
            return [.fail(self.name, "\(subject.directory): \(error)", self.advice)]
        }
    }

    private static let name = "store"
    private static let advice = "earshot store check lists all; with a copy, stop the server and run earshot store restore"
}
