"""What a run's folder contains: the names of all its records.

specification.json                  what the run computes
report.json                         the report, when the run is finished
lock                                held by the process that writes
model.npz                           what reports say of the model
log_f.npz                           log f of the test set; log_f-0001024.npz: of the examples from number 1,024 on
exact.npz                           the exact log Z, where it was computed
conventions.npz                     whether the data fit another reading of the parameters better
names.npz                           the names of model and data
samples.npz                         samples of the model to look at; samples/…-0000000.npz: chains that they end
base-NAME.npz, schedule-NAME.npz    every base that was tried, and the friction from it
base-NAME/…-0000000.npz             chains from number 0 on that the rates of a base were made from
pilot-NAME/…-0000000.npz            chains from number 0 on of the pilot from a base
pilot-NAME/steps.npz                steps of that pilot, where a budget chose them
part-0/decision-0.npz               size and base of stage 0
part-0/spent.npz                    seconds of the budget that were spent
part-0/stage-0/stage.npz            what the stage's weights depend on, besides the model
part-0/stage-0/ais-0000000.npz      log weights of the AIS chains from number 0 on
part-0/stage-0/raise-0000000.npz    log weights of the RAISE examples from number 0 on
part-0/stage-0/evidence.npz         what other starts found
part-0/stage-0/evidence/…-0000000.npz    chains from number 0 on of other starts

Numbered files are chunks of a batch (`batch`); the arrays of all follow from the types of their records (`records`). A
name here is the path in the folder without `.npz`; … is what the module that runs the chains calls them.
"""

# Files that are no records
SPECIFICATION, REPORT, LOCK = "specification.json", "report.json", "lock"
# Records that all parts and stages share
MODEL, LOG_F, EXACT, CONVENTIONS = "model", "log_f", "exact", "conventions"
NAMES, SAMPLES = "names", "samples"
base_name, schedule_name, pilot_folder = "base-{}".format, "schedule-{}".format, "pilot-{}".format
# Parts and stages
part_folder, decision_name, stage_folder = "part-{}".format, "decision-{}".format, "part-{}/stage-{}".format
SPENT, STAGE, EVIDENCE = "spent", "stage", "evidence"
